/** The official client against the surface alone, for what a whole service hardly ever shows: mounts, limits, late readers. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as sdk from '@comfyorg/sdk'
import * as low from '@comfyorg/sdk/low'
import { JOB_ID, makeJob, makeOutput, makeProgress } from '../support/app/memory-jobs.ts'
import { startSurface, type TestSurface } from '../support/app/start-surface.ts'
import { call } from '../support/clients/call.ts'
import { openEvents } from '../support/clients/event-reader.ts'

const PREFIX = '/deployment/7'

/** The client takes its address from the environment only, and reads it once. */
function clientOf(service: TestSurface, prefix = ''): sdk.Comfy {
  process.env['COMFY_BASE_URL'] = service.url + prefix
  try {
    return new sdk.Comfy({ apiKey: 'unexpected-key' })
  } finally {
    delete process.env['COMFY_BASE_URL']
  }
}

test('it follows a job below a mount prefix from submit to the end, and its key is ignored', async () => {
  await using service = await startSurface({ gate: { mountPrefix: PREFIX } })
  const client = clientOf(service, PREFIX)
  const job = await client.submit(client.workflows.fromJson({ 1: { class_type: 'X', inputs: {} } }))
  const kinds: string[] = []
  for await (const event of job.events()) {
    kinds.push(event.kind === 'statusChange' ? event.status : event.kind)
    if (kinds.length > 1) continue
    service.jobs.change({ status: 'running', queuePosition: null })
    service.jobs.change({ progress: makeProgress(0.5) })
    service.jobs.change({ status: 'succeeded', outputs: [makeOutput()] })
  }
  assert.deepEqual(kinds, ['queued', 'running', 'progress', 'outputReady', 'succeeded'])
})

test('it sees the outputs of a job that ended before it connected', async () => {
  await using service = await startSurface()
  service.jobs.put(makeJob({ status: 'succeeded', outputs: [makeOutput()] }))
  const kinds: string[] = []
  for await (const event of (await clientOf(service).jobs.get(JOB_ID)).events()) kinds.push(event.kind)
  assert.deepEqual(kinds, ['outputReady', 'statusChange'])
})

test('it turns to polling when there are too many streams', async () => {
  await using service = await startSurface({ api: { maxStreamsPerAccount: 1 } })
  service.jobs.put(makeJob())
  using other = openEvents(service.url, `/api/v2/jobs/${JOB_ID}/events`)
  await other.next()
  const job = await clientOf(service).jobs.get(JOB_ID)
  service.jobs.change({ status: 'succeeded' })
  const statuses: string[] = []
  for await (const event of job.events()) if (event.kind === 'statusChange') statuses.push(event.status)
  assert.deepEqual(statuses, ['succeeded'])
})

test('its schemas accept a job in every state', async () => {
  await using service = await startSurface()
  for (const changes of [
    { status: 'queued', startedAt: null, queuePosition: 1 },
    { progress: makeProgress(0.5), outputs: [makeOutput()] },
    { status: 'failed', error: { code: 'c', message: 'm', nodeId: null, classType: null, traceback: null } },
  ] as const) {
    service.jobs.put(makeJob(changes))
    low.schemas.zJob.parse((await call(service.url, `/api/v2/jobs/${JOB_ID}`)).json)
  }
})

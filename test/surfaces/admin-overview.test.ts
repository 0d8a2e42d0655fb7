import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestApp } from '../support/app/start-app.ts'
import { createFakeEngine } from '../support/engines/fake-engine.ts'
import { waitUntil } from '../support/wait-until.ts'

const JSON_BODY = { 'content-type': 'application/json' }

test('the overview of the local kind names its workers', async () => {
  await using app = await startTestApp({ settings: { workers: '3' }, overrides: { engine: createFakeEngine() } })
  const overview = (await (await fetch(`${app.url}/admin/v1/overview`)).json()) as {
    readonly pools: readonly { readonly pool: string; readonly workers: number }[]
  }
  assert.deepEqual(
    overview.pools.map(({ pool, workers }) => [pool, workers]),
    [['default', 3]],
  )
})

test('the overview counts every event stream that is open: of a job, of the console, of operators', async () => {
  await using app = await startTestApp({ overrides: { engine: createFakeEngine() } })
  const gate = JSON.stringify({ workflow: { '1': { class_type: 'FakeGate', inputs: {} } } })
  const submitted = await fetch(`${app.url}/api/v2/jobs`, { method: 'POST', body: gate, headers: JSON_BODY })
  const { id } = (await submitted.json()) as { readonly id: string }
  const paths = ['/console/v1/events', `/console/v1/jobs/${id}/live`, `/api/v2/jobs/${id}/events`, '/admin/v1/events']
  const stop = new AbortController()
  const streams = async () =>
    ((await (await fetch(`${app.url}/admin/v1/overview`)).json()) as { readonly streams: number }).streams
  for (const [index, path] of paths.entries()) {
    assert.equal((await fetch(app.url + path, { signal: stop.signal })).status, 200, path)
    assert.equal(await streams(), index + 1, path)
  }
  stop.abort()
  await waitUntil(async () => (await streams()) === 0)
})

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { systemClock } from '../../../lib/clock.ts'
import { openSqliteStore } from '../../../src/adapters/store/sqlite/open-sqlite-store.ts'
import { createEndpoints, type Draft, type DraftRequest } from '../../../src/domain/endpoints/manage-endpoints.ts'
import { createRunEndpoint } from '../../../src/domain/endpoints/run-endpoint.ts'
import { ServiceError } from '../../../src/domain/errors.ts'
import type { SubmitRequest } from '../../../src/domain/jobs/submit/submit-job.ts'

test('an endpoint is judged by the engines of its deployment, and names and runs on none that its account may not use', async (t) => {
  const directory = await mkdtemp(path.join(tmpdir(), 'atelier-republish-'))
  t.after(() => rm(directory, { recursive: true, force: true }))
  await using store = await openSqliteStore({ directory })
  const usable = new Set(['gpus'])
  const mayUse = (_: string, deployment: string) => usable.has(deployment)
  const judgedBy: DraftRequest['deployment'][] = []
  const draft = async ({ deployment, file }: DraftRequest): Promise<Draft> => {
    judgedBy.push(deployment)
    return {
      ...{ title: null, description: null, graph: JSON.stringify(file), inputs: [], outputs: [], candidates: [] },
      ...{ required: { classes: [], weights: [] }, warnings: [], missing: { classes: [], weights: [] }, fault: null },
    }
  }
  const endpoints = createEndpoints({ store: store.endpoints, clock: systemClock, draft, mayUse })
  const common = { accountId: randomUUID(), name: 'poster', keyId: null, note: '', isBreakingMeant: false }
  const publish = (file: object, settings?: { readonly deployment: string | null }) =>
    endpoints.publish({ ...common, file: { ...file }, declaration: null, ...(settings && { settings }) })
  await publish({ a: 1 })
  await publish({ a: 2 }, { deployment: 'gpus' })
  const { endpoint } = await publish({ a: 3 })
  assert.equal(endpoint.settings.deployment, 'gpus')
  await publish({ a: 4 }, { deployment: null })
  assert.deepEqual(judgedBy, [null, 'gpus', 'gpus', null])

  const isRefused = (error: unknown) => error instanceof ServiceError && error.details?.['field'] === 'deployment'
  await assert.rejects(publish({ a: 5 }, { deployment: 'theirs' }), isRefused)
  await assert.rejects(endpoints.change(common, { settings: { deployment: 'theirs' } }, null), isRefused)
  assert.equal(judgedBy.length, 4, 'nothing is told of the engines of somebody else')
  await endpoints.change(common, { settings: { deployment: 'gpus' } }, null)

  const notReached = () => assert.fail('nothing of the call is looked at')
  const runs = createRunEndpoint({
    ...{ endpoints, mayUse, check: null, random: () => 0 },
    ...{ submit: notReached, submitBatch: notReached, trySubmit: notReached, takeFiles: notReached },
    lendFiles: notReached,
  })
  usable.delete('gpus')
  const request = {
    ...{ ...common, endpoints: null, reference: 'poster', inputs: {}, pool: null, extraData: null, metadata: {} },
    ...{ priority: 0, webhook: null, reuse: null, idempotencyKey: null },
  }
  const isStopped = (error: unknown) => error instanceof ServiceError && error.refusal === 'endpoint_stopped'
  await assert.rejects(runs.run(request), isStopped)
  await assert.rejects(runs.tryRun(request), isStopped)
  await assert.rejects(runs.runMany({ ...request, items: [{}], isWhole: true, digest: '' }), isStopped)
  // Whoever lost it can still change everything else.
  assert.equal((await endpoints.change(common, { title: 'A poster' }, null)).title, 'A poster')
})

test('a call of a pinned version is recorded for no other release, though its deployment moves while the call is made', async (t) => {
  const directory = await mkdtemp(path.join(tmpdir(), 'atelier-pinned-'))
  t.after(() => rm(directory, { recursive: true, force: true }))
  await using store = await openSqliteStore({ directory })
  const draft = async ({ file }: DraftRequest): Promise<Draft> => ({
    ...{ title: null, description: null, graph: JSON.stringify(file), inputs: [], outputs: [], candidates: [] },
    ...{ required: { classes: [], weights: [] }, warnings: [], missing: { classes: [], weights: [] }, fault: null },
  })
  const deployments = { mayUse: () => true, servedRelease: () => 3 }
  const endpoints = createEndpoints({ store: store.endpoints, clock: systemClock, draft, ...deployments })
  const deployment = 'dep-000000000001'
  const common = { accountId: randomUUID(), keyId: null, note: '', isBreakingMeant: false }
  const publish = (name: string, isReleasePinned: boolean) =>
    endpoints.publish({ ...common, name, isReleasePinned, file: {}, declaration: null, settings: { deployment } })
  await publish('loose', false)
  await publish('fixed', true)

  const asked: SubmitRequest[] = []
  const stop = new Error('as far as this test goes')
  const submit = async (request: SubmitRequest) => {
    asked.push(request)
    throw stop
  }
  const unused = () => assert.fail('not asked')
  const takeFiles = async () => ({ taken: new Map(), bytes: new Map(), problems: [] })
  const runs = createRunEndpoint({
    ...{ endpoints, ...deployments, check: null, random: () => 0 },
    ...{ submit, submitBatch: unused, trySubmit: unused, takeFiles, lendFiles: unused },
  })
  const request = {
    ...{ ...common, endpoints: null, inputs: {}, pool: null, extraData: null, metadata: {} },
    ...{ priority: 0, webhook: null, reuse: null, idempotencyKey: null },
  }
  for (const reference of ['loose', 'fixed']) await assert.rejects(runs.run({ ...request, reference }), stop)
  const [loose, fixed] = asked
  assert.equal(loose?.mustRunOn, undefined, 'it runs wherever its deployment is')
  fixed?.mustRunOn?.(`${deployment}.7.v3`)
  for (const pool of [`${deployment}.8.v4`, deployment])
    assert.throws(
      () => fixed?.mustRunOn?.(pool),
      (error) => error instanceof ServiceError && error.refusal === 'endpoint_stopped',
    )
})

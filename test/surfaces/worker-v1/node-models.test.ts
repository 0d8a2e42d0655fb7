/** Partner models for nodes that run on a joined worker: the service calls them, and the worker never sees a provider's key. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodeDefinition } from '../../../engine/graph/node-catalog.ts'
import { ADMIN_TOKEN, createWorkerKey } from '../../support/app/join-worker.ts'
import { startTestApp } from '../../support/app/start-app.ts'
import { MODELS } from '../../support/app/start-router.ts'
import { call } from '../../support/clients/call.ts'
import { INFO, WorkerClient } from '../../support/clients/worker-client.ts'
import { createFakeProvider, done, gate } from '../../support/providers/fake-provider.ts'
import { waitUntil } from '../../support/wait-until.ts'

const MODEL_INPUTS = { model: ['STRING', {}] as const, input: ['STRING', {}] as const }
const INPUT = '{"seed":12345678901234567890}'

test('a model runs for a job that is held, once per key, and for no other', async () => {
  const provider = createFakeProvider({})
  await using app = await startTestApp({
    settings: { joins: 'on', adminToken: ADMIN_TOKEN },
    overrides: { engines: [], models: { providers: [provider], models: MODELS } },
  })
  const worker = new WorkerClient(app.url, (await createWorkerKey(app.url)).text)
  const save = INFO['FakeSave'] as NodeDefinition
  const info = {
    ...INFO,
    RunModel: { ...save, input: { optional: MODEL_INPUTS } },
    Text: { ...save, output: ['STRING'], output_is_list: [false], output_name: ['text'] },
    CreateList: { ...save, is_input_list: true, output: ['*'], output_is_list: [true], output_name: ['list'] },
    Tiles: { ...save, output: ['STRING'], output_is_list: [true], output_name: ['tiles'] },
  }
  assert.equal((await worker.publishClasses(info)).status, 200)
  const workflow = {
    '1': { class_type: 'RunModel', inputs: { model: 'fake/direct ', input: INPUT } },
    '2': { class_type: 'RunModel', inputs: { model: 'fake/nothing', input: INPUT } },
    '3': { class_type: 'Text', inputs: { text: 'fake/polled' } },
    '4': { class_type: 'RunModel', inputs: { model: ['3', 0], input: INPUT } },
    '5': { class_type: 'CreateList', inputs: { 'inputs.input0': ['3', 0], 'inputs.input1': ['3', 0] } },
    '6': { class_type: 'RunModel', inputs: { model: 'fake/direct', input: ['5', 0] } },
    '7': { class_type: 'RunModel', inputs: { model: 'fake/direct', input: ['3', 0] } },
    '8': { class_type: 'Tiles', inputs: {} },
    '9': { class_type: 'RunModel', inputs: { model: 'fake/direct', input: ['8', 0] } },
    '10': { class_type: 'RunModel', inputs: { model: 'fake/direct', input: 'no JSON' } },
  }
  const body = JSON.stringify({ workflow })
  assert.equal((await call(app.url, '/api/v2/jobs', { method: 'POST', body })).status, 201)
  const lease = await worker.take()
  const run = (model: string, key: string, input = INPUT, images: readonly string[] = []) => {
    const asked = { lease_id: lease.leaseId, model, input, images, key }
    return worker.ask('POST', `/jobs/${lease.jobId}/models`, asked)
  }
  const first = await run('fake/direct', '1.0')
  assert.equal(first.status, 200, first.text)
  assert.equal(typeof first.json.output, 'string')
  const again = await run('fake/direct', '1.0')
  assert.deepEqual([again.status, again.json], [200, first.json])
  assert.equal(provider.submits.length, 1)
  assert.ok([404, 422].includes((await run('fake/nothing', '2.0')).status))
  // Neither a model that the graph does not name, nor one more call than its nodes make.
  for (const [model, key] of [
    ...[['fake/polled', '1.0'] as const, ['fake/direct', '2.0'] as const, ['fake/other', '4.0'] as const],
    ...[['fake/direct', '3.0'] as const, ['fake/direct', '1'] as const, ['fake/direct', '1.1000'] as const],
  ]) {
    const answer = await run(model, key)
    assert.deepEqual([answer.status, answer.json.error.type], [403, 'forbidden'], `${model} ${key}`)
  }
  assert.equal(provider.submits.length, 1)
  // No other input or picture than the graph has, and a node is called as often as its list is long.
  for (const [key, input, ...images] of [
    ...[['1.0', '{}'] as const, ['1.0', INPUT, 'AAAA'] as const, ['10.0', '{}'] as const, ['10.0', 'null'] as const],
    ...[['1.1', INPUT] as const, ['1.00', INPUT] as const, ['6.2', INPUT] as const, ['7.1', INPUT] as const],
    ...[['9.1000', INPUT] as const, ['9.00', INPUT] as const],
  ]) {
    const answer = await run('fake/direct', key, input, images)
    assert.deepEqual([answer.status, answer.json.error.type], [403, 'forbidden'], `${key} ${input}`)
  }
  assert.equal(provider.submits.length, 1)
  assert.equal((await run('fake/direct', '6.0', 'no JSON')).status, 422)
  for (const key of ['6.0', '6.1', '7.0', '9.0', '9.9']) {
    const made = await run('fake/direct', key, `{ "seed" : "${key}" }`)
    assert.equal(made.status, 200, made.text)
  }
  assert.equal(provider.submits.length, 6)
  await worker.finish(lease)
  assert.equal((await run('fake/direct', '1.0')).status, 404)
  assert.equal(provider.submits.length, 6)
})

test('a call that is asked for again while its first request still waits is made once, and both get its answer', async () => {
  const provider = createFakeProvider({})
  const held = gate(done({ made: 'once' }))
  provider.answer(held.answer)
  await using app = await startTestApp({
    settings: { joins: 'on', adminToken: ADMIN_TOKEN },
    overrides: { engines: [], models: { providers: [provider], models: MODELS } },
  })
  const worker = new WorkerClient(app.url, (await createWorkerKey(app.url)).text)
  const save = INFO['FakeSave'] as NodeDefinition
  const info = { ...INFO, RunModel: { ...save, input: { optional: MODEL_INPUTS } } }
  assert.equal((await worker.publishClasses(info)).status, 200)
  const workflow = { '1': { class_type: 'RunModel', inputs: { model: 'fake/direct', input: INPUT } } }
  await call(app.url, '/api/v2/jobs', { method: 'POST', body: JSON.stringify({ workflow }) })
  const { jobId, leaseId } = await worker.take()
  const asked = { lease_id: leaseId, model: 'fake/direct', input: INPUT, images: [], key: '1.0' }
  const run = () => worker.ask('POST', `/jobs/${jobId}/models`, asked)
  const first = run()
  await waitUntil(() => provider.submits.length === 1)
  const again = run()
  // The second one is refused at once, or waits: then it is answered only after the provider.
  assert.equal(await Promise.race([again.then(({ status }) => status), settled(worker)]), 'waits')
  held.open()
  for (const { status, json } of await Promise.all([first, again]))
    assert.deepEqual([status, JSON.parse(json.output)], [200, { made: 'once' }])
  assert.equal(provider.submits.length, 1)
})

/** After the service has answered a good many other requests. */
async function settled(worker: WorkerClient): Promise<'waits'> {
  for (let round = 0; round < 20; round++) await worker.ask('POST', '/leases', { leases: [] })
  return 'waits'
}

/** What the built-in engine is told of a job, and how its words reach the service. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readGraph } from '../../../engine/graph/graph-json.ts'
import type { EngineEvent } from '../../../engine/graph/run-event.ts'
import type { JsonValue } from '../../../lib/json/lossless-json.ts'
import { openEmbeddedEngine } from '../../../src/adapters/engines/embedded/engine.ts'
import { EngineLostError } from '../../../src/domain/engine/engine-lost-error.ts'
import type { Engine, EngineRun } from '../../../src/domain/engine/engine-port.ts'
import type { ModelRequest, RunModel } from '../../../src/domain/engine/model-port.ts'
import { type Refusal, ServiceError } from '../../../src/domain/errors.ts'

const MEMORY = { threads: 1, memoryLimitBytes: 67_108_864 }

function toRun(graph: JsonValue, fields: Partial<EngineRun> = {}): EngineRun {
  return {
    jobId: 'job',
    accountId: 'me',
    attempt: 1,
    claimId: 'claim',
    graph: readGraph(graph),
    inputs: new Map(),
    extraData: null,
    reserveOutputNumbers: async () => 1,
    ...fields,
  }
}

async function run(engine: Engine, job: EngineRun): Promise<EngineEvent[]> {
  return Array.fromAsync(engine.run(job, { signal: new AbortController().signal }))
}

const asking = {
  2: { class_type: 'RunModel', inputs: { model: 'bfl/flux', input: '{}' } },
  3: { class_type: 'PreviewAny', inputs: { source: ['2', 0] } },
}

test('a model is asked for in the name of the job, with its credentials', async () => {
  const requests: ModelRequest[] = []
  const runModel: RunModel = async (request) => {
    requests.push(request)
    return { output: 'done', images: [] }
  }
  await using engine = await openEmbeddedEngine({ ...MEMORY, runModel })
  const extraData = { api_key_comfy_org: 'sk-secret' }
  const events = await run(engine, toRun(asking, { extraData }))
  const [{ model, accountId, jobId, key, extraData: given }] = requests
  assert.deepEqual([model, accountId, jobId, key, given], ['bfl/flux', 'me', 'job', '2.0', extraData])
  assert.equal(events.at(-1)?.type, 'succeeded')
  assert.ok(!JSON.stringify(events).includes('sk-secret'))
})

test('a refused model fails its node in the words of the refusal', async () => {
  const refusals: [Refusal, string][] = [
    ['not_found', 'RuntimeError'],
    ['insufficient_credits', 'InsufficientFundsError'],
    ['subscription_inactive', 'InactiveSubscriptionError'],
  ]
  for (const [refusal, exceptionType] of refusals) {
    const runModel = () => Promise.reject(new ServiceError(refusal, `refused: ${refusal}`))
    await using engine = await openEmbeddedEngine({ ...MEMORY, runModel })
    const last = (await run(engine, toRun(asking))).at(-1)
    assert.ok(last?.type === 'failed')
    assert.deepEqual([last.failure.message, last.failure.exceptionType], [`refused: ${refusal}`, exceptionType])
  }
})

test('of what came with the submit, only the PNG info reaches a file', async () => {
  await using engine = await openEmbeddedEngine(MEMORY)
  const graph = {
    1: { class_type: 'EmptyImage', inputs: { width: 8, height: 8, batch_size: 1, color: 0 } },
    2: { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'x' } },
  }
  const extraData = { extra_pnginfo: { workflow: { title: 'mine' } }, api_key_comfy_org: 'sk-secret' }
  const report = (await run(engine, toRun(graph, { extraData }))).find(({ type }) => type === 'node_report')
  assert.ok(report?.type === 'node_report')
  const [file] = report.report.images
  assert.ok(file.kind === 'file')
  const png = Buffer.concat(await Array.fromAsync(file.read()))
  assert.ok(png.includes('{"title": "mine"}'))
  assert.ok(!png.includes('sk-secret'))
})

test('a run that loses the thread of the engine is lost to this engine, and may be run elsewhere', async () => {
  const asked = Promise.withResolvers<void>()
  const runModel: RunModel = () => {
    asked.resolve()
    return new Promise(() => {})
  }
  await using engine = await openEmbeddedEngine({ ...MEMORY, runModel })
  const lost = assert.rejects(run(engine, toRun(asking)), EngineLostError)
  await asked.promise
  await engine[Symbol.asyncDispose]()
  await lost
})

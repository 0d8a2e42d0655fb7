/** The node that has a partner's model do the work, with the function that a service hands to its engine. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import sharp from 'sharp'
import { type JsonObject, NumberText } from '../../lib/json/lossless-json.ts'
import type { ModelRequest, RunModel } from '../../src/domain/engine/model-port.ts'
import { ServiceError } from '../../src/domain/errors.ts'
import { dumped, type GraphJson, lastOf, openTestEngine } from './support/harness.ts'

const dump = (id: string, slot = 0) => ({ class_type: 'TestDump', inputs: { source: [id, slot] } })

function graph(inputs: Record<string, unknown> = {}): GraphJson {
  const given = { model: ' bfl/flux ', input: '{"prompt": "a cat", "strength": 1.0}', ...inputs }
  return { 2: { class_type: 'RunModel', inputs: given }, 3: dump('2', 0), 4: dump('2', 1) }
}

async function failureWith(runModel: RunModel | undefined, inputs?: Record<string, unknown>) {
  await using engine = await openTestEngine({ runModel })
  return lastOf(await engine.run(graph(inputs)), 'failed').failure
}

describe('RunModel', () => {
  test('is declared as a partner node', async () => {
    await using engine = await openTestEngine()
    const definition = engine.engine.catalog().find('RunModel')
    assert.deepEqual([definition?.category, definition?.['api_node']], ['partner', true])
    assert.deepEqual(definition?.output, ['STRING', 'IMAGE'])
    assert.deepEqual(definition?.output_is_list, [false, true])
  })

  test('without a router it fails and says so', async () => {
    const failure = await failureWith(undefined)
    assert.equal(failure.message, 'no model router is configured on this server, so the model bfl/flux cannot be run')
    assert.deepEqual([failure.nodeId, failure.classType], ['2', 'RunModel'])
  })

  test('carries input, pictures, account and credentials there, and the answer back', async () => {
    const requests: ModelRequest[] = []
    const picture = { width: 2, height: 3, channels: 4, background: { r: 255, g: 0, b: 0, alpha: 1 } } as const
    await using engine = await openTestEngine({
      async runModel(request) {
        requests.push(request)
        const webp = await sharp({ create: picture }).webp({ lossless: true }).toBuffer()
        return { output: { cost: new NumberText('2.0'), id: 2n ** 60n }, images: [webp, webp] }
      },
    })
    const empty = { class_type: 'EmptyImage', inputs: { width: 700, height: 500, batch_size: 2, color: 0x00ff00 } }
    const events = await engine.run(
      { 1: empty, ...graph({ images: ['1', 0] }) },
      { accountId: 'me', extraData: { api_key_comfy_org: 'hush' } },
    )
    const [request] = requests
    assert.deepEqual(
      [request.model, request.accountId, request.jobId, request.extraData, request.key],
      ['bfl/flux', 'me', 'job', { api_key_comfy_org: 'hush' }, '2.0'],
    )
    assert.deepEqual(request.input, { prompt: 'a cat', strength: new NumberText('1.0') })
    assert.equal(request.images.length, 2)
    const { data, info } = await sharp(request.images[1]).raw().toBuffer({ resolveWithObject: true })
    assert.deepEqual([info.width, info.height, ...data.subarray(-3)], [700, 500, 0, 255, 0])
    assert.deepEqual(dumped(events, '3'), [{ kind: 'str', value: '{"cost":2.0,"id":1152921504606846976}' }])
    const images = dumped(events, '4') as JsonObject[]
    assert.deepEqual(
      images.map(({ shape }) => shape),
      [
        [1, 3, 2, 3],
        [1, 3, 2, 3],
      ],
    )
    assert.ok(!JSON.stringify(events, (_key, value) => (typeof value === 'bigint' ? null : value)).includes('hush'))
  })

  test('a refusal is told in its own words, anything else is not', async () => {
    const refused = await failureWith(async () => {
      throw new ServiceError('not_found', 'there is no model bfl/flux; did you mean bfl/flux-2?')
    })
    assert.equal(refused.message, 'there is no model bfl/flux; did you mean bfl/flux-2?')
    const unpaid = await failureWith(async () => {
      throw new ServiceError('insufficient_credits', 'the balance is too low')
    })
    assert.deepEqual([unpaid.exceptionType, unpaid.message], ['InsufficientFundsError', 'the balance is too low'])
    const broken = await failureWith(async () => {
      throw new Error('key=secret')
    })
    assert.equal(broken.message, 'the model bfl/flux could not be run')
  })

  test('an input that is no JSON, an empty id and a damaged picture fail the node', async () => {
    const answer: RunModel = async () => ({ output: null, images: [new Uint8Array([1, 2, 3])] })
    assert.match((await failureWith(answer, { input: '{' })).message, /^input is not valid JSON/)
    assert.match((await failureWith(answer, { model: ' ' })).message, /^model is empty/)
    assert.match((await failureWith(answer)).message, /^a picture is damaged/)
  })

  test('a cancel gives the call up', async () => {
    const abort = new AbortController()
    let reason: string | null = null
    await using engine = await openTestEngine({
      runModel: (_request, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            reason = 'given up'
            reject(signal.reason)
          })
          abort.abort()
        }),
    })
    const events = await engine.run(graph(), { signal: abort.signal })
    assert.equal(events.at(-1)?.type, 'interrupted')
    assert.equal(reason, 'given up')
  })
})

/** The node that has a partner's model do the work, with the function that the owner of a run hands in. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import sharp from 'sharp'
import { type JsonObject, NumberText } from '../../../lib/json/lossless-json.ts'
import type { ModelCall } from '../../graph/model-call.ts'
import { ModelRefusedError, type RunModel } from '../../threads/model-line.ts'
import { dumped, type GraphJson, lastOf, openTestEngine } from '../support/harness.ts'

const dump = (id: string, slot = 0) => ({ class_type: 'TestDump', inputs: { source: [id, slot] } })

function graph(inputs: Record<string, unknown> = {}): GraphJson {
  const given = { model: ' bfl/flux ', input: '{"prompt": "a cat", "strength": 1.0}', ...inputs }
  return { 2: { class_type: 'RunModel', inputs: given }, 3: dump('2', 0), 4: dump('2', 1) }
}

async function failureWith(runModel: RunModel | undefined, inputs?: Record<string, unknown>) {
  await using engine = await openTestEngine()
  return lastOf(await engine.run(graph(inputs), { runModel }), 'failed').failure
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

  test('carries input and pictures there, and the answer back', async () => {
    const calls: ModelCall[] = []
    const picture = { width: 2, height: 3, channels: 4, background: { r: 255, g: 0, b: 0, alpha: 1 } } as const
    const runModel: RunModel = async (call) => {
      calls.push(call)
      const webp = await sharp({ create: picture }).webp({ lossless: true }).toBuffer()
      return { output: { cost: new NumberText('2.0'), id: 2n ** 60n }, images: [webp, webp] }
    }
    await using engine = await openTestEngine()
    const empty = { class_type: 'EmptyImage', inputs: { width: 700, height: 500, batch_size: 2, color: 0x00ff00 } }
    const events = await engine.run({ 1: empty, ...graph({ images: ['1', 0] }) }, { runModel })
    const [call] = calls
    assert.deepEqual([call.model, call.key], ['bfl/flux', '2.0'])
    assert.deepEqual(call.input, { prompt: 'a cat', strength: new NumberText('1.0') })
    assert.equal(call.images.length, 2)
    const { data, info } = await sharp(call.images[1]).raw().toBuffer({ resolveWithObject: true })
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
  })

  test('a refusal is told in its own words, anything else is not', async () => {
    const refused = await failureWith(async () => {
      throw new ModelRefusedError('there is no model bfl/flux; did you mean bfl/flux-2?')
    })
    assert.equal(refused.message, 'there is no model bfl/flux; did you mean bfl/flux-2?')
    assert.equal(refused.exceptionType, 'RuntimeError')
    const unpaid = await failureWith(async () => {
      throw new ModelRefusedError('the balance is too low', { exceptionType: 'InsufficientFundsError' })
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
    const runModel: RunModel = (_call, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          reason = 'given up'
          reject(signal.reason)
        })
        abort.abort()
      })
    await using engine = await openTestEngine()
    const events = await engine.run(graph(), { runModel, signal: abort.signal })
    assert.equal(events.at(-1)?.type, 'interrupted')
    assert.equal(reason, 'given up')
  })
})

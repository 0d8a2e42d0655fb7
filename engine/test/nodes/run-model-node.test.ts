/** The node that has a partner's model do the work, with the function that the owner of a run hands in. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import sharp from 'sharp'
import { type JsonObject, NumberText, parseLosslessJson } from '../../../lib/json/lossless-json.ts'
import { type SeededRandom, seededRandom } from '../../../test/support/seeded-random.ts'
import { readGraph } from '../../graph/graph-json.ts'
import { createCallCounts, type ModelCall } from '../../graph/model-nodes.ts'
import { ModelRefusedError, type RunModel } from '../../threads/model-line.ts'
import { dumped, type GraphJson, lastOf, openTestEngine } from '../support/harness.ts'

const dump = (id: string, slot = 0) => ({ class_type: 'TestDump', inputs: { source: [id, slot] } })

function graph(inputs: Record<string, unknown> = {}): GraphJson {
  const given = { model: ' bfl/flux ', input: '{"prompt": "a cat", "strength": 1.0}', ...inputs }
  return { 2: { class_type: 'RunModel', inputs: given }, 3: dump('2', 0), 4: dump('2', 1) }
}

/** Texts, lists of them, lists of lists and what nodes make of each member, with models at random places. */
function listGraph(random: SeededRandom): GraphJson {
  const json: Record<string, { class_type: string; inputs: Record<string, unknown> }> = {}
  const texts: string[] = []
  const source = () => [random.pick(texts), 0]
  for (let index = 0; index < 12; index++) {
    const id = `${index + 10}`
    const kind = index < 2 ? 'text' : random.pick(['text', 'list', 'list', 'join', 'model'])
    if (kind === 'text') json[id] = { class_type: 'PrimitiveString', inputs: { value: `{"draw":${random.next()}}` } }
    if (kind === 'join') {
      json[id] = {
        class_type: 'StringReplace',
        inputs: { string: source(), find: 'nowhere', replace: source() },
      }
    }
    if (kind === 'list') {
      const members = Array.from({ length: random.between(1, 4) }, (_, place) => [`inputs.input${place}`, source()])
      json[id] = { class_type: 'CreateList', inputs: Object.fromEntries(members) }
    }
    if (kind === 'model') json[id] = { class_type: 'RunModel', inputs: { model: 'a/b', input: source() } }
    texts.push(id)
  }
  json['90'] = { class_type: 'RunModel', inputs: { model: 'a/b', input: source() } }
  for (const id of Object.keys(json)) json[`1${id}`] = dump(id, 0)
  return json
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

  test('is called exactly as often as the graph alone tells, for lists of any making', async () => {
    await using engine = await openTestEngine()
    for (let seed = 1; seed <= 12; seed++) {
      const json = listGraph(seededRandom(seed))
      const keys = new Map<string, number>()
      const runModel: RunModel = async ({ key }) => {
        const [nodeId = ''] = key.split('.')
        keys.set(nodeId, (keys.get(nodeId) ?? 0) + 1)
        return { output: {}, images: [] }
      }
      lastOf(await engine.run(json, { runModel }), 'succeeded')
      const bounds = { catalog: engine.engine.catalog(), files: 0, maxListLength: 1000 }
      const callsOf = createCallCounts(readGraph(parseLosslessJson(JSON.stringify(json))), bounds)
      for (const [nodeId, made] of keys) assert.equal(callsOf(nodeId), made, `seed ${seed}, node ${nodeId}`)
      assert.ok(keys.size > 0)
    }
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

/** `POST /api/v2/workflows/convert` through the whole service, with the classes that the editor's pairs were recorded with. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { writeChunks } from '../../../lib/files/png-chunks.ts'
import { stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { CheckedClient, refused } from '../../support/clients/checked-client.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { damage } from '../../support/workflows/damage.ts'
import { readEditorCatalog, readEditorPairs } from '../../support/workflows/editor-pairs.ts'

const PATH = '/api/v2/workflows/convert'
const pairs = readEditorPairs()

describe('converting a workflow', () => {
  let service: TestApp
  let client: CheckedClient
  before(async () => {
    const engine = createFakeEngine()
    const catalog = readEditorCatalog()
    service = await startTestApp({
      settings: { workers: '1' },
      overrides: { engine: { ...engine, catalog: () => catalog } },
    })
    client = new CheckedClient(service.url)
  })
  after(() => service[Symbol.asyncDispose]())

  const convert = (body: string | Uint8Array) => client.call(PATH, { method: 'POST', body })

  test('answers what the editor would submit', async () => {
    for (const { ui, prompt, name } of pairs.slice(0, 20)) {
      const { status, json } = await convert(stringifyLosslessJson(ui))
      assert.equal(status, 200, name)
      if (!stringifyLosslessJson(ui).includes('%date'))
        assert.deepEqual(json.workflow, JSON.parse(stringifyLosslessJson(prompt)))
    }
  })

  test('takes files that carry a workflow or a prompt, and graphs that need no conversion', async () => {
    const [{ ui, prompt }] = pairs
    const texts = { workflow: stringifyLosslessJson(ui), prompt: stringifyLosslessJson(prompt) }
    for (const [name, text] of Object.entries(texts)) {
      const picture = writeChunks([{ type: 'tEXt', body: Buffer.from(`${name}\0${text}`, 'latin1') }])
      assert.deepEqual((await convert(picture)).json.workflow, JSON.parse(texts.prompt), name)
    }
    assert.deepEqual((await convert(texts.prompt)).json.workflow, JSON.parse(texts.prompt))
    const empty = await convert(writeChunks([]))
    refused(empty, 422, 'invalid_workflow')
    assert.equal(empty.json.error.message, 'the file carries neither a workflow nor a prompt')
  })

  test('keeps every digit of a seed', async () => {
    const node = { id: 1, type: 'RandomNoise', mode: 0, inputs: [], outputs: [], properties: {} }
    const body = JSON.stringify({ nodes: [{ ...node, widgets_values: ['SEED', 'fixed'] }], links: [] })
    const { text } = await convert(body.replace('"SEED"', '18446744073709551615'))
    assert.match(text, /"noise_seed":18446744073709551615/)
  })

  test('names parameters, warnings and what is missing', async () => {
    const plain = (id: number, type: string, more: object) => ({
      id,
      type,
      mode: 0,
      properties: {},
      outputs: [],
      inputs: [],
      ...more,
    })
    const nodes = [
      plain(1, 'CheckpointLoaderSimple', { widgets_values: ['none.safetensors'] }),
      plain(2, 'CLIPTextEncode', { widgets_values: ['{a|b} cat'], outputs: [{ type: 'CONDITIONING', links: [5] }] }),
      plain(3, 'KSampler', {
        inputs: [{ name: 'positive', type: 'CONDITIONING', link: 5 }],
        widgets_values: [7, 'fixed', 20, 8, 'euler', 'simple', 1],
      }),
      plain(4, 'Load3D', { widgets_values: ['a.glb', '', '', '', '', 64, 64] }),
    ]
    const { json } = await convert(JSON.stringify({ nodes, links: [[5, 2, 0, 3, 1, 'CONDITIONING']] }))
    const named = json.parameters.map(
      ({ name, node_id, input }: Record<string, string>) => `${name} ${node_id}.${input}`,
    )
    assert.deepEqual(named.slice(0, 3), ['prompt 2.text', 'seed 3.seed', 'steps 3.steps'])
    assert.deepEqual(json.missing.weights, [{ name: 'none.safetensors', node_id: '1', input: 'ckpt_name' }])
    assert.deepEqual(
      json.warnings.map(({ node_id, input }: Record<string, string>) => [node_id, input]),
      [
        ['2', 'text'],
        ['4', 'image'],
      ],
    )
  })

  test('refuses what it cannot convert, naming the node and its pack', async () => {
    const node = {
      id: 9,
      type: 'SimpleMath+',
      mode: 0,
      inputs: [],
      outputs: [],
      properties: { cnr_id: 'comfyui_essentials' },
    }
    const answer = await convert(JSON.stringify({ nodes: [{ ...node, widgets_values: ['a*b'] }], links: [] }))
    refused(answer, 422, 'invalid_workflow')
    const { message, details } = answer.json.error
    assert.match(message, /node 9 has the class "SimpleMath\+", from comfyui_essentials/)
    assert.equal(details.node_errors['9'][0].reason, 'unknown_class')
    for (const body of ['', '{', 'nonsense', '[]', '{}', '\u0000\u0001'])
      refused(await convert(body), 422, 'invalid_workflow')
  })

  test('a job in the format of the editor is still refused, with the way to convert it', async () => {
    const body = JSON.stringify({ workflow: { nodes: [], links: [] } })
    const answer = await client.call('/api/v2/jobs', { method: 'POST', body })
    refused(answer, 422, 'workflow_format_ui')
    assert.match(answer.json.error.message, /workflows\/convert.*atelier convert/)
  })

  test('damaged bytes are refused or converted, and never a failure', async () => {
    const random = seededRandom(7)
    for (let time = 0; time < 300; time++) {
      const bytes = Buffer.from(stringifyLosslessJson(damage(random.pick(pairs).ui, random.next)))
      if (time % 2 === 0) bytes[random.between(0, bytes.length)] = random.between(0, 256)
      const { status } = await convert(bytes)
      assert.ok(status === 200 || status === 422, `${status} for damage ${time}`)
    }
  })
})

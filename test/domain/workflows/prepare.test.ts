import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FieldError } from '../../../engine/graph/graph-error.ts'
import { type JsonObject, type JsonValue, parseLosslessJson } from '../../../lib/json/lossless-json.ts'
import type { Asset } from '../../../src/domain/assets/asset.ts'
import type { FolderQuery, PathQuery } from '../../../src/domain/assets/asset-store.ts'
import { ServiceError } from '../../../src/domain/errors.ts'
import { createInspectWorkflow, createPrepareWorkflow } from '../../../src/domain/workflows/prepare.ts'
import { recordedCatalog } from '../../support/engines/recorded-catalog.ts'

const catalog = recordedCatalog()
const MINE = 'mine'
const NOW = new Date('2026-01-02T00:00:00.000Z')

const idOf = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`
const hashOf = (digit: string) => digit.repeat(64)

function asset(number: number, fields: Partial<Asset> = {}): Asset {
  return {
    id: idOf(number),
    accountId: MINE,
    hash: hashOf(String(number % 10)),
    sizeBytes: 100 + number,
    contentType: 'image/png',
    filePath: null,
    tags: [],
    createdAt: new Date(NOW.getTime() + number),
    expiresAt: null,
    jobId: null,
    ...fields,
  }
}

/** A store of these assets that counts its look-ups. */
function storeOf(...assets: Asset[]) {
  const calls: string[] = []
  const own = (accountId: string) => assets.filter((held) => held.accountId === accountId)
  const newestFirst = (list: Asset[]) => list.toSorted((a, b) => b.createdAt.getTime() - a.createdAt.getTime())
  const newestBy = (list: Asset[], key: (held: Asset) => string | null, wanted: readonly string[]) =>
    wanted.flatMap((value) => newestFirst(list).find((held) => key(held) === value) ?? [])
  return {
    calls,
    findMany: async (accountId: string, ids: readonly string[]) => {
      calls.push('ids')
      return own(accountId).filter((held) => ids.includes(held.id))
    },
    findNewestByPath: async (accountId: string, { filePaths, origin }: PathQuery) => {
      calls.push(origin)
      const held = own(accountId).filter(({ jobId }) => (jobId === null ? 'upload' : 'output') === origin)
      return newestFirst(newestBy(held, ({ filePath }) => filePath, filePaths))
    },
    findInFolders: async (accountId: string, { folders, limit }: FolderQuery) => {
      calls.push('folders')
      const isInside = ({ filePath }: Asset) =>
        folders.some((folder) => filePath?.startsWith(`${folder}/`) && !filePath.includes('/', folder.length + 1))
      return newestFirst(own(accountId).filter(isInside)).slice(0, limit)
    },
    findNewestByHash: async (accountId: string, hashes: readonly string[]) => {
      calls.push('hashes')
      return newestBy(own(accountId), (held) => held.hash, hashes)
    },
  }
}

function prepareWith(...assets: Asset[]) {
  const store = storeOf(...assets)
  const prepare = createPrepareWorkflow({ catalog: () => catalog, assets: store, clock: { now: () => NOW } })
  return { store, prepare: (workflow: JsonValue | undefined) => prepare(MINE, workflow, { pool: 'default' }) }
}

function loads(...images: JsonValue[]): JsonObject {
  const graph: JsonObject = {}
  images.forEach((image, index) => {
    graph[`load${index}`] = { class_type: 'LoadImage', inputs: { image } }
    graph[`show${index}`] = { class_type: 'PreviewImage', inputs: { images: [`load${index}`, 0] } }
  })
  return graph
}

function reference(info: JsonValue): JsonObject {
  return { __type: 'core/ASSET', info }
}

async function refusalOf(work: Promise<unknown>): Promise<ServiceError> {
  const error = await work.then(
    () => assert.fail('was not refused'),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof ServiceError)
  return error
}

function nodeErrors(error: ServiceError): Record<string, FieldError[]> {
  return error.details?.node_errors as Record<string, FieldError[]>
}

test('a reference becomes the name of its content, and the job knows its bytes', async () => {
  const { prepare } = prepareWith(asset(1, { filePath: 'photos/Holiday.JPG' }), asset(2, { contentType: 'image/webp' }))
  const { text, inputs, outputs } = await prepare(
    loads(reference({ id: idOf(1), hash: 'hint' }), reference({ id: idOf(2) })),
  )
  const graph = JSON.parse(text)
  assert.equal(graph.load0.inputs.image, `${hashOf('1')}.jpg`)
  assert.equal(graph.load1.inputs.image, `${hashOf('2')}.webp`)
  assert.deepEqual(inputs[0], {
    name: `${hashOf('1')}.jpg`,
    hash: hashOf('1'),
    sizeBytes: 101,
    contentType: 'image/png',
  })
  assert.equal(inputs.length, 2)
  assert.deepEqual(outputs, ['show0', 'show1'])
})

test('references are found at any depth and looked up together', async () => {
  const { prepare, store } = prepareWith(asset(1), asset(2))
  const workflow = loads(reference({ id: idOf(1) }))
  const deep = [reference({ id: idOf(2) }), { more: [[reference({ id: idOf(1) })]] }, 3]
  workflow.show0 = { class_type: 'PreviewImage', inputs: { images: ['load0', 0], extra: deep } }
  const { text } = await prepare(workflow)
  assert.deepEqual(JSON.parse(text).show0.inputs.extra, [`${hashOf('2')}.png`, { more: [[`${hashOf('1')}.png`]] }, 3])
  assert.deepEqual(store.calls, ['ids'])
})

test('unknown, foreign and malformed references are missing assets', async () => {
  const { prepare } = prepareWith(asset(1), asset(2, { accountId: 'theirs' }))
  const refused = async (...infos: JsonValue[]) => {
    const error = await refusalOf(prepare(loads(...infos.map(reference))))
    assert.equal(error.refusal, 'missing_asset')
    return error
  }
  const unknown = await refused({ id: idOf(1) }, { id: idOf(9) }, { id: idOf(2) }, { id: 'not-an-id' })
  assert.deepEqual(unknown.details, { missingIds: [idOf(9), idOf(2), 'not-an-id'] })
  const malformed: JsonValue[] = [null, 'text', {}, [], { id: 5 }, { id: '' }, { hash: 'abc' }]
  for (const info of malformed) {
    const error = await refused(info)
    assert.deepEqual(error.details, { missingIds: [] })
    assert.match(error.message, /^Node load0, input image: the reference has /)
  }
  const bare = await refusalOf(prepare(loads([{ __type: 'core/ASSET' }])))
  assert.equal(bare.refusal, 'missing_asset')
})

test('a hash alone is enough, but never overrides an id', async () => {
  const { prepare } = prepareWith(asset(1))
  const { inputs } = await prepare(loads(reference({ hash: `BLAKE3:${hashOf('1')}` })))
  assert.equal(inputs[0].hash, hashOf('1'))
  const error = await refusalOf(prepare(loads(reference({ id: idOf(7), hash: hashOf('1') }))))
  assert.deepEqual(error.details, { missingIds: [idOf(7)] })
  const unknown = await refusalOf(prepare(loads(reference({ hash: hashOf('e') }))))
  assert.deepEqual(unknown.details, { missingIds: [hashOf('e')] })
})

test('a reference to weights becomes their name below the root', async () => {
  const { prepare } = prepareWith(asset(1, { filePath: 'models/loras/style/x.safetensors' }))
  const workflow = loads()
  workflow.note = { class_type: 'PreviewAny', inputs: { source: reference({ id: idOf(1) }) } }
  assert.equal(JSON.parse((await prepare(workflow)).text).note.inputs.source, 'style/x.safetensors')
})

test('a bare name means the newest upload of that path, written with or without its folder', async () => {
  const { prepare, store } = prepareWith(
    asset(1, { filePath: 'cat.png' }),
    asset(2, { filePath: 'input/cat.png' }),
    asset(3, { filePath: 'input/dog.png' }),
  )
  const { inputs, text } = await prepare(loads('cat.png', 'cat.png [input]', 'input/cat.png', 'dog.png [input]'))
  assert.deepEqual(
    inputs.map(({ name, hash }) => [name, hash[0]]),
    [
      ['cat.png', '2'],
      ['cat.png [input]', '2'],
      ['input/cat.png', '2'],
      ['dog.png [input]', '3'],
    ],
  )
  assert.equal(JSON.parse(text).load3.inputs.image, 'dog.png [input]')
  assert.deepEqual(store.calls, ['upload'])
})

test('a name in the output folder means the newest file of that name that a job has made', async () => {
  const { prepare, store } = prepareWith(
    asset(1, { filePath: 'cat.png', jobId: idOf(91) }),
    asset(2, { filePath: 'cat.png' }),
    asset(3, { filePath: 'cat.png', jobId: idOf(92) }),
    asset(4, { filePath: 'cat.png' }),
  )
  const { inputs } = await prepare(loads('cat.png', 'cat.png [output]', 'output/cat.png [output]', 'cat.png [temp]'))
  assert.deepEqual(
    inputs.map(({ name, hash }) => [name, hash[0]]),
    [
      ['cat.png', '4'],
      ['cat.png [output]', '3'],
      ['output/cat.png [output]', '3'],
      ['cat.png [temp]', '3'],
    ],
  )
  assert.deepEqual(store.calls.sort(), ['output', 'upload'])
})

test('an output is not found by a bare name, nor an upload in the output folder', async () => {
  const { prepare } = prepareWith(
    asset(1, { filePath: 'made.png', jobId: idOf(91) }),
    asset(2, { filePath: 'sent.png' }),
  )
  for (const image of ['made.png', 'made.png [input]', 'sent.png [output]', 'sent.png [temp]', 'made.png  [output]']) {
    assert.equal((await refusalOf(prepare(loads(image)))).refusal, 'invalid_workflow', image)
  }
})

test('a content-addressed name is found by its hash', async () => {
  const { prepare } = prepareWith(asset(1))
  const name = `${hashOf('1')}.png`
  assert.deepEqual((await prepare(loads(name))).inputs[0].name, name)
})

test('an unknown bare name is refused in the words of the loading node', async () => {
  const { prepare } = prepareWith(asset(1, { filePath: 'theirs.png', accountId: 'theirs' }))
  for (const image of ['nope.png', 'theirs.png', '', 'x'.repeat(5_000)]) {
    const error = await refusalOf(prepare(loads(image)))
    assert.equal(error.refusal, 'invalid_workflow')
  }
  const error = await refusalOf(prepare(loads('nope.png')))
  assert.equal(error.message, 'Node load0 (LoadImage): image - Invalid image file: nope.png')
  assert.deepEqual(error.details, {
    node_errors: {
      load0: [{ field: 'image', reason: 'custom_validation_failed', message: 'image - Invalid image file: nope.png' }],
    },
  })
})

test('files are named after what the input loads', async () => {
  const { prepare } = prepareWith()
  const workflow = {
    a: { class_type: 'LoadAudio', inputs: { audio: 'x.wav' } },
    b: { class_type: 'PreviewAny', inputs: { source: ['a', 0] } },
    c: { class_type: 'LoadVideo', inputs: { file: null } },
    d: { class_type: 'PreviewAny', inputs: { source: ['c', 0] } },
    e: { class_type: 'LoadLatent', inputs: { latent: 'x.latent' } },
    f: { class_type: 'PreviewAny', inputs: { source: ['e', 0] } },
    g: { class_type: 'CustomCombo', inputs: { choice: 'anything' } },
    h: { class_type: 'PreviewAny', inputs: { source: ['g', 0] } },
    i: { class_type: 'Painter', inputs: { mask: '', width: 64, height: 64, bg_color: '#000000' } },
    j: { class_type: 'PreviewImage', inputs: { images: ['i', 0] } },
  }
  const error = await refusalOf(prepare(workflow))
  const messages = Object.values(nodeErrors(error)).map(([item]) => item.message)
  assert.deepEqual(messages, [
    'audio - Invalid audio file: x.wav',
    'file - Invalid video file: None',
    'latent - Invalid latent file: x.latent',
  ])
})

test('the digits of a number survive from the submit to the executed text', async () => {
  const { prepare } = prepareWith()
  const source = `{"1":{"class_type":"ImageAddNoise","inputs":{"image":["2",0],"seed":18446744073709551615,"strength":0.50}},
    "2":{"class_type":"EmptyImage","inputs":{"width":8,"height":8,"batch_size":1,"color":0},"_meta":{"title":"Blank \\u00e9"}},
    "3":{"class_type":"PreviewImage","inputs":{"images":["1",0],"big":12345678901234567890123}}}`
  const { text, graph } = await prepare(parseLosslessJson(source))
  assert.match(text, /"seed":18446744073709551615,"strength":0\.50/)
  assert.match(text, /"big":12345678901234567890123/)
  assert.match(text, /"_meta":\{"title":"Blank é"\}/)
  assert.equal(graph.get('1')?.inputs.seed, 18446744073709551615n)
})

test('one bad output of two refuses the workflow, naming every fault', async () => {
  const { prepare } = prepareWith()
  const error = await refusalOf(
    prepare({
      1: { class_type: 'EmptyImage', inputs: { width: 8, height: 8, batch_size: 1, color: 0 } },
      2: { class_type: 'PreviewImage', inputs: { images: ['1', 0] } },
      12: { class_type: 'ImageScale', inputs: { image: ['1', 0], width: -1, height: 8, crop: 'disabled' } },
      13: { class_type: 'PreviewImage', inputs: { images: ['12', 0] } },
    }),
  )
  assert.equal(error.message, 'Node 12 (ImageScale): required input upscale_method is missing (and 1 more)')
  assert.deepEqual(error.details, {
    node_errors: {
      12: [
        { field: 'upscale_method', reason: 'missing_input', message: 'required input upscale_method is missing' },
        { field: 'width', reason: 'value_smaller_than_min', message: 'input width: Value -1 smaller than min of 0' },
      ],
    },
  })
})

test('what is wrong with the whole workflow stands in the message', async () => {
  const { prepare } = prepareWith()
  const empty = await refusalOf(prepare({}))
  assert.equal(empty.message, 'Prompt has no outputs')
  assert.deepEqual(empty.details, { node_errors: {} })
  const unknown = await refusalOf(prepare({ 1: { class_type: 'Nope', inputs: {} } }))
  assert.match(unknown.message, /^Node 1 \(Nope\): /)
  const [item] = nodeErrors(unknown)[1]
  assert.equal(item.reason, 'missing_node_type')
})

test('an editor export is refused with advice, with and without last_node_id', async () => {
  const { prepare } = prepareWith()
  const withId: JsonObject = { nodes: [], links: [], last_node_id: 1 }
  const without: JsonObject = { nodes: [], links: [], version: 0.4 }
  for (const workflow of [withId, without]) {
    assert.equal((await refusalOf(prepare(workflow))).refusal, 'workflow_format_ui')
  }
})

test('a workflow that is missing or no graph is invalid', async () => {
  const { prepare } = prepareWith()
  const deep = parseLosslessJson(`{"1":{"class_type":"X","inputs":{"a":${'['.repeat(80)}${']'.repeat(80)}}}}`)
  const many = Object.fromEntries(Array.from({ length: 20_001 }, (_, index) => [`n${index}`, {}]))
  const wrong: (JsonValue | undefined)[] = [
    undefined,
    null,
    5,
    'text',
    [],
    { 1: null },
    { 1: [] },
    { 1: { class_type: 5, inputs: {} } },
    { 1: { class_type: 'SaveImage' } },
    { 1: { class_type: 'SaveImage', inputs: [] } },
    { ['x'.repeat(300)]: { class_type: 'SaveImage', inputs: {} } },
    deep,
    many,
    { 1: { class_type: 'PreviewAny', inputs: { source: 10n ** 5000n } } },
  ]
  for (const workflow of wrong) assert.equal((await refusalOf(prepare(workflow))).refusal, 'invalid_workflow')
})

test('more files than a graph can need are refused before the store is asked', async () => {
  const { prepare, store } = prepareWith()
  const error = await refusalOf(prepare(loads(...Array.from({ length: 1_001 }, (_, index) => `${index}.png`))))
  assert.equal(error.refusal, 'invalid_workflow')
  assert.deepEqual(store.calls, [])
})

test('a workflow without files asks no store', async () => {
  const { prepare, store } = prepareWith()
  await prepare({ 1: { class_type: 'PreviewAny', inputs: { source: 1 } } })
  assert.deepEqual(store.calls, [])
})

test('inspection leaves partly valid workflows to its caller', async () => {
  const inspect = createInspectWorkflow({ catalog: () => catalog, assets: storeOf(), clock: { now: () => NOW } })
  const workflow = {
    1: { class_type: 'PreviewAny', inputs: { source: 1 } },
    2: { class_type: 'PreviewAny', inputs: {} },
  }
  const { result } = await inspect(MINE, workflow, { pool: 'default' })
  assert.deepEqual(result.goodOutputs, ['1'])
  assert.deepEqual(Object.keys(result.nodeErrors), ['2'])
  assert.deepEqual((await inspect(MINE, workflow, { pool: 'default', targets: ['1'] })).result.nodeErrors, {})
})

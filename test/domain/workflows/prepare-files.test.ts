/** The files that a graph names are resolved to stored bytes: by reference, by name, by hash. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonValue } from '../../../lib/json/lossless-json.ts'
import type { Asset } from '../../../src/domain/assets/asset.ts'
import { GivenFileError, type TakeGivenFiles } from '../../../src/domain/assets/given-files.ts'
import { createInspectWorkflow, createPrepareWorkflow } from '../../../src/domain/workflows/prepare.ts'
import {
  asset,
  catalog,
  hashOf,
  idOf,
  loads,
  MINE,
  NOW,
  nodeErrors,
  prepareWith,
  reference,
  refusalOf,
  storeOf,
} from './prepare-rig.ts'

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

/** Files by address, of which each fetch makes an asset; `page.html` cannot be taken. */
function prepareWithUrls(...assets: Asset[]) {
  const asked: string[][] = []
  const takeUrls: TakeGivenFiles = async (_accountId, files) => {
    asked.push(files.map(({ url, kind }) => `${kind} ${url}`))
    return files.map(({ url }) =>
      url.endsWith('.html') ? new GivenFileError('unsupported_type', 'the file is a web page') : asset(3),
    )
  }
  const deps = { catalog: () => catalog, assets: storeOf(...assets), clock: { now: () => NOW }, takeUrls }
  return { asked, prepare: createPrepareWorkflow(deps), inspect: createInspectWorkflow(deps) }
}

const POOL = { pool: 'default' }

test('an address stands where a file or a reference may stand, and nowhere else', async () => {
  const { asked, prepare } = prepareWithUrls(asset(1))
  const workflow = loads(
    { url: 'https://a/1' },
    reference({ url: 'https://a/2' }),
    reference({ id: idOf(1), url: 'x' }),
  )
  const deep = { more: [reference({ url: 'https://a/3', id: null })], url: 'https://a/4' }
  workflow['show0'] = {
    class_type: 'PreviewImage',
    inputs: { images: ['load0', 0], extra: deep, odd: { url: 'https://a/5' } },
  }
  const { text, inputs } = await prepare(MINE, workflow, POOL)
  const graph = JSON.parse(text)
  const name = `${hashOf('3')}.png`
  assert.deepEqual(asked, [['image https://a/1', 'file https://a/3', 'image https://a/2']])
  assert.deepEqual([graph.load0.inputs.image, graph.load1.inputs.image], [name, name])
  assert.equal(graph.load2.inputs.image, `${hashOf('1')}.png`, 'the id decides')
  assert.deepEqual(graph.show0.inputs.extra, { more: [name], url: 'https://a/4' })
  assert.deepEqual(graph.show0.inputs.odd, { url: 'https://a/5' })
  assert.deepEqual(inputs.map((input) => input.name).sort(), [`${hashOf('1')}.png`, name])
})

test('addresses whose files cannot be taken are told by node and input', async () => {
  const { prepare } = prepareWithUrls()
  const workflow = loads({ url: 'https://a/1' }, { url: 'https://a/page.html' })
  const error = await refusalOf(prepare(MINE, workflow, POOL))
  assert.equal(error.message, 'Node load1, input image: the file is a web page')
  assert.deepEqual(nodeErrors(error), {
    load1: [{ field: 'image', reason: 'unsupported_type', message: 'the file is a web page' }],
  })
  const { prepare: without } = prepareWith()
  const off = await refusalOf(without(workflow))
  assert.deepEqual(
    Object.values(nodeErrors(off))
      .flat()
      .map(({ reason }) => reason),
    ['fetch_forbidden', 'fetch_forbidden'],
  )
})

test('a dry run fetches nothing, and still judges all else', async () => {
  const { asked, inspect } = prepareWithUrls()
  const dry = { ...POOL, giving: null }
  const good = await inspect(MINE, loads({ url: 'https://a/1' }), dry)
  assert.equal(good.result.error, null)
  const bad = await inspect(MINE, loads({ url: 'https://a/1' }, 'missing.png'), dry)
  assert.deepEqual(Object.keys(bad.result.nodeErrors), ['load1'])
  assert.deepEqual(asked, [])
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject, JsonValue } from '../../../lib/json/lossless-json.ts'
import { applyDeclaration } from '../../../src/domain/endpoints/declaration.ts'
import type { EndpointInput } from '../../../src/domain/endpoints/endpoint.ts'
import { ServiceError } from '../../../src/domain/errors.ts'
import { namesOf, placesOf, portrait, proposed } from './propose-rig.ts'

const proposal = await proposed({
  ...portrait(),
  '8': { class_type: 'LoadImage', inputs: { image: 'a.png' } },
})
const declare = (declaration: JsonValue) => applyDeclaration(proposal, declaration)

function find<Type extends EndpointInput['type']>(inputs: readonly EndpointInput[], name: string, type: Type) {
  const found = inputs.find((input) => input.name === name)
  assert.equal(found?.type, type)
  return found as EndpointInput & { readonly type: Type }
}

function refused(declaration: JsonValue): { readonly field: unknown; readonly message: string } {
  try {
    declare(declaration)
  } catch (error) {
    assert.ok(error instanceof ServiceError)
    assert.equal(error.refusal, 'invalid_field')
    return { field: error.details?.['field'], message: error.message }
  }
  return assert.fail('it was taken')
}

test('nothing declared leaves the proposal as it is', () => {
  const nothings: JsonValue[] = [null, {}, { inputs: null, outputs: {} }]
  for (const nothing of nothings) {
    const declared = declare(nothing)
    assert.deepEqual(declared.inputs, proposal.inputs)
    assert.deepEqual(declared.outputs, proposal.outputs)
    assert.deepEqual(declared.graph, proposal.graph)
  }
})

test('declared inputs come first, in their order, with their own names and words', () => {
  const { title, inputs } = declare({
    title: 'Portrait',
    inputs: {
      photo: { from: 'image', title: 'Your photo', description: 'A face', max_pixels: 4_000_000, max_bytes: 1_000_000 },
      scene: { from: '2.text', max_length: 500 },
      seed: null,
    },
  })
  assert.equal(title, 'Portrait')
  assert.deepEqual(namesOf(inputs).slice(0, 4), ['photo', 'scene', 'seed', 'negative_prompt'])
  const photo = find(inputs, 'photo', 'file')
  assert.deepEqual(
    [photo.title, photo.description, photo.maxPixels, photo.maxBytes],
    ['Your photo', 'A face', 4_000_000, 1_000_000],
  )
  assert.equal(find(inputs, 'scene', 'text').maxLength, 500)
})

test('a list says the order as well, and `only` leaves out everything else', () => {
  const { inputs } = declare({ only: true, inputs: [{ name: 'width' }, { name: 'prompt', required: true }] })
  assert.deepEqual(namesOf(inputs), ['width', 'prompt'])
  assert.equal(inputs[1].isRequired, true)
})

test('a candidate is added by its name or its place', () => {
  const { inputs } = declare({ only: true, inputs: { sampler: '5.sampler_name', model: 'checkpoint' } })
  assert.deepEqual(inputs.map(placesOf), [['5.sampler_name'], ['1.ckpt_name']])
})

test('what is hidden cannot be set: its value is that of the workflow, or the one that the author gives', () => {
  const { inputs, graph } = declare({ inputs: { steps: { hidden: true, default: 8 }, cfg: { remove: true } } })
  assert.ok(!namesOf(inputs).some((name) => name === 'steps' || name === 'cfg'))
  const sampler = (graph['5'] as JsonObject)['inputs'] as JsonObject
  assert.deepEqual([sampler['steps'], sampler['cfg']], [8, 8])
  assert.equal(((proposal.graph['5'] as JsonObject)['inputs'] as JsonObject)['steps'], 20)
})

test('bounds, choices and patterns become narrower', () => {
  const { inputs } = declare({
    inputs: {
      width: { minimum: 256, maximum: 1024, default: 768 },
      sampler: { from: 'sampler_name', choices: ['euler', 'ddim'] },
      model: { from: 'checkpoint', choices: ['base.safetensors', 'other.safetensors'] },
      height: { choices: [512, 768] },
      prompt: { pattern: '[a-z ]+', max_length: 80 },
      seed: { maximum: 100 },
    },
  })
  const width = find(inputs, 'width', 'integer')
  assert.deepEqual([width.minimum, width.maximum, width.default, width.example], [256, 1024, 768, 512])
  assert.deepEqual(find(inputs, 'sampler', 'choice').choices, ['euler', 'ddim'])
  assert.equal(find(inputs, 'model', 'choice').isOpen, false)
  assert.deepEqual(find(inputs, 'height', 'choice').choices, [512, 768])
  assert.equal(find(inputs, 'prompt', 'text').pattern, '[a-z ]+')
  assert.equal(find(inputs, 'seed', 'seed').maximum, 100)
})

test('outputs are renamed, ordered and left out', () => {
  const { outputs } = declare({ outputs: { picture: { from: 'image', title: 'The picture' } } })
  assert.deepEqual(outputs, [{ name: 'picture', title: 'The picture', nodeId: '7', kind: 'image' }])
  assert.deepEqual(namesOf(declare({ outputs: { raw: { from: '6', kind: 'image' } } }).outputs), ['raw', 'image'])
  assert.deepEqual(declare({ outputs: { image: { hidden: true } } }).outputs, [])
  assert.equal(refused({ outputs: { raw: { from: '99' } } }).field, 'outputs.raw.from')
})

const REFUSALS: readonly (readonly [what: string, inputs: JsonValue, field: string, message: RegExp])[] = [
  ['a source that is not there', { scene: { from: 'promt' } }, 'inputs.scene.from', /did you mean prompt\?/],
  ['a name that the proposal does not have', { scene: {} }, 'inputs.scene', /names no value/],
  [
    'two inputs of one name',
    [
      { name: 'a', from: 'width' },
      { name: 'a', from: 'height' },
    ],
    'inputs.a',
    /declared twice/,
  ],
  ['the name of another input', { width: { from: 'height' } }, 'inputs.width', /name of another input/],
  ['two inputs of one place', { a: '2.text', b: 'prompt' }, 'inputs.b', /same value of the graph as inputs\.a/],
  ['a reserved name', { version: '2.text' }, 'inputs.version', /for itself/],
  ['a malformed name', { 'Big Name': '2.text' }, 'inputs.Big Name', /lower case/],
  ['an unknown member', { width: { maximun: 9 } }, 'inputs.width.maximun', /did you mean maximum\?/],
  ['bounds that contradict', { width: { minimum: 900, maximum: 300 } }, 'inputs.width.minimum', /above the maximum/],
  ['bounds beyond those of the class', { width: { maximum: 99_999 } }, 'inputs.width.maximum', /above 16384/],
  ['a default outside of the bounds', { width: { maximum: 400 } }, 'inputs.width.default', /above 400, and is 512/],
  ['a default of another type', { width: { default: 'wide' } }, 'inputs.width.default', /number/],
  [
    'a choice that the class does not offer',
    { s: { from: 'sampler_name', choices: ['magic'] } },
    'inputs.s.choices',
    /does not offer/,
  ],
  [
    'a default that is no choice',
    { s: { from: 'sampler_name', choices: ['ddim'] } },
    'inputs.s.default',
    /one of the choices/,
  ],
  ['a default that the pattern refuses', { prompt: { pattern: '\\d+' } }, 'inputs.prompt.default', /must match/],
  ['a default for a file', { image: { default: 'x.png' } }, 'inputs.image.default', /means nothing/],
  ['another kind of file', { image: { kind: 'audio' } }, 'inputs.image.kind', /must be image/],
  ['bounds of a text', { prompt: { minimum: 3 } }, 'inputs.prompt.minimum', /means nothing/],
  ['a length beyond the bound', { prompt: { max_length: 1e9 } }, 'inputs.prompt.max_length', /whole number/],
  ['no object', { prompt: 7 }, 'inputs.prompt', /object/],
  ['too many', Array.from({ length: 10_000 }, (_, index) => ({ name: `a${index}` })), 'inputs', /at most/],
]

for (const [what, inputs, field, message] of REFUSALS) {
  test(`${what}: refused, with the input named`, () => {
    const refusal = refused({ inputs })
    assert.equal(refusal.field, field)
    assert.match(refusal.message, message)
  })
}

const HOSTILE = [
  '(a+)+',
  '(a|a)*b',
  '(?:a?){30}a{30}',
  '(.*)\\1',
  '(?=a).*',
  '.*.*.*x',
  'a{1,999}b{1,999}c{1,999}',
  '(',
  'x'.repeat(300),
  '(?<n>a)',
]
const GOOD = [
  '[a-z]+',
  '(?:red|green|blue)',
  '\\d{1,4}x\\d{1,4}',
  '(?:ab)+',
  '\\p{L}[\\p{L} ]*',
  '#[0-9a-fA-F]{6}',
  '[^\\]{}]*',
]

test('patterns that could take very long are refused, and ordinary ones taken', () => {
  for (const pattern of HOSTILE)
    assert.equal(refused({ inputs: { prompt: { pattern } } }).field, 'inputs.prompt.pattern', pattern)
  for (const pattern of GOOD) declare({ inputs: { prompt: { pattern, required: true } } })
})

test('parameters of image clients are put to inputs that can take them', () => {
  const inputs = { scene: { from: '2.text' }, photo: { from: 'image' } }
  const said = (openai: JsonValue) => ({ only: true, inputs, openai })
  const { inputs: declared } = declare(said({ map: { prompt: 'scene', image: ['photo'] } }))
  assert.deepEqual(
    declared.map(({ parameters }) => parameters),
    [[{ name: 'prompt' }], [{ name: 'image', index: 0 }]],
  )
  const cases: [openai: JsonValue, field: string, message: RegExp][] = [
    [[], 'openai', /must be an object/],
    [{ maps: {} }, 'openai.maps', /did you mean map/],
    [{ map: { promt: 'scene' } }, 'openai.map.promt', /did you mean prompt/],
    [{ map: { prompt: 'scenes' } }, 'openai.map.prompt', /names no input of the endpoint; did you mean scene/],
    [{ map: { prompt: 7 } }, 'openai.map.prompt', /must be an object/],
    [{ map: { prompt: 'photo' } }, 'openai.map.prompt', /cannot set photo, which is a file \(image\)/],
    [{ map: { width: 'scene' } }, 'openai.map.width', /cannot set scene, which is of the type text/],
    [{ map: { prompt: 'scene', style: 'scene' } }, 'openai.map.style', /the same input as prompt/],
    [{ map: { image: ['photo', 'photo'] } }, 'openai.map.image', /the same input as image/],
    [{ map: { image: Array.from({ length: 17 }, () => 'photo') } }, 'openai.map.image', /at most 16/],
    [{ map: { width: { input: 'scene', values: { a: 'b' } } } }, 'openai.map.width.values', /sent as it is/],
    [{ map: { quality: { input: 'photo', values: { low: 'x' } } } }, 'openai.map.quality.values', /which is a file/],
    [{ map: { quality: { input: 'scene', values: { low: 7 } } } }, 'openai.map.quality.values.low', /must be a text/],
    [{ map: { quality: { input: 'scene', values: {} } } }, 'openai.map.quality.values', /1 to 32 words/],
    [{ map: { quality: { input: 'scene', value: {} } } }, 'openai.map.quality.value', /did you mean values/],
    [{ map: {}, mask_convention: 'alpha' }, 'openai.mask_convention', /without an input for the mask/],
    [{ map: { mask: 'photo' }, mask_convention: 'black' }, 'openai.mask_convention', /one of white_is_edit, alpha/],
    [{ map: { ['constructor']: 'scene' } }, 'openai.map.constructor', /is not known here/],
  ]
  for (const [openai, field, message] of cases) {
    const refusal = refused(said(openai))
    assert.equal(refusal.field, field)
    assert.match(refusal.message, message)
  }
})

test('titles and descriptions have no characters that control a terminal or turn a line around', () => {
  for (const bad of ['a\u001b[31mb', '\u202egnp.exe', '\ud800', 'a\u0000']) {
    assert.equal(refused({ title: bad }).field, 'title')
    assert.equal(refused({ description: bad }).field, 'description')
    assert.equal(refused({ inputs: { seed: { description: bad } } }).field, 'inputs.seed.description')
  }
  assert.equal(refused({ title: 'two\nlines' }).field, 'title')
  assert.equal(declare({ title: 'بطاقة', description: 'two\nlines' }).description, 'two\nlines')
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type JsonObject, NumberText, parseLosslessJson } from '../../../lib/json/lossless-json.ts'
import { checkInputs } from './check-inputs.ts'
import type { EndpointInput } from './endpoint.ts'

const base = (name: string) => ({ name, title: name, description: '', isRequired: false, places: [], example: null })
const INPUTS: readonly EndpointInput[] = [
  {
    ...base('prompt'),
    type: 'text',
    isRequired: true,
    default: null,
    minLength: 1,
    maxLength: 10,
    pattern: null,
    isMultiline: true,
  },
  { ...base('code'), type: 'text', default: 'ab', minLength: 0, maxLength: 10, pattern: '[a-z]+', isMultiline: false },
  { ...base('steps'), type: 'integer', default: 20, minimum: 1, maximum: 50, step: 1 },
  { ...base('cfg'), type: 'number', default: 7.5, minimum: 0, maximum: 10, step: 0.1 },
  { ...base('seed'), type: 'seed', minimum: 0, maximum: 18446744073709551615n },
  { ...base('tiled'), type: 'boolean', default: false },
  { ...base('style'), type: 'choice', default: 'oil', choices: ['oil', 'ink', 3], isOpen: false },
  { ...base('lora'), type: 'choice', default: 'a.safetensors', choices: ['a.safetensors'], isOpen: true },
  { ...base('photo'), type: 'file', kind: 'image', maxBytes: null, maxPixels: null },
]
const random = () => 0.5

function check(given: JsonObject, options: { readonly areTexts?: boolean } = {}) {
  const { values, files, problems } = checkInputs(INPUTS, given, { random, ...options })
  return { values: Object.fromEntries(values), files: files.map(({ input, value }) => [input.name, value]), problems }
}
const reasonsOf = (given: JsonObject, options = {}) =>
  check(given, options).problems.map(({ name, reason }) => `${name}: ${reason}`)

test('what is left out, or null, has its default; a seed is drawn and told', () => {
  const { values, problems } = check({ prompt: 'a cat', steps: null })
  assert.deepEqual(problems, [])
  const { seed, ...others } = values
  assert.deepEqual(others, {
    prompt: 'a cat',
    code: 'ab',
    steps: 20,
    cfg: 7.5,
    tiled: false,
    style: 'oil',
    lora: 'a.safetensors',
  })
  assert.equal(seed, 2 ** 52)
})

test('every mistake is told at once, each under the name of its input', () => {
  const wrong = { promt: 'x', prompt: '', code: 'A1', steps: 51, cfg: -0.5, seed: -2, tiled: 1, style: 'fresco' }
  assert.deepEqual(reasonsOf(wrong), [
    ...['promt: unknown', 'prompt: too_short', 'code: no_match', 'steps: too_large', 'cfg: too_small'],
    ...['seed: too_small', 'tiled: wrong_type', 'style: not_one_of'],
  ])
  const { problems } = check(wrong)
  assert.equal(problems[0]?.message, 'promt is no input of this endpoint; did you mean prompt?')
  assert.deepEqual([problems[3]?.maximum, problems[7]?.allowed], [50, ['oil', 'ink', 3]])
  assert.deepEqual(reasonsOf({}), ['prompt: missing'])
  assert.deepEqual(reasonsOf({ prompt: 'x'.repeat(11), steps: 1.5, cfg: 'seven' }), [
    ...['prompt: too_long', 'steps: wrong_type', 'cfg: wrong_type'],
  ])
})

test('whole numbers keep all their digits, however they are written', () => {
  const seedOf = (text: string) =>
    check(parseLosslessJson(`{"prompt":"x","seed":${text}}`) as JsonObject).values['seed']
  assert.equal(seedOf('18446744073709551615'), 18446744073709551615n)
  assert.equal(seedOf('"18446744073709551615"'), 18446744073709551615n)
  assert.equal(seedOf('7.0'), 7)
  assert.deepEqual(reasonsOf({ prompt: 'x', seed: 18446744073709551616n }), ['seed: too_large'])
  assert.deepEqual(check({ prompt: 'x', cfg: new NumberText('2.50') }).problems, [])
})

test('minus one asks for a random seed, as it does in the editor', () => {
  assert.equal(check({ prompt: 'x', seed: -1 }).values['seed'], 2 ** 52)
})

test('a text counts as a number only where there are nothing but texts', () => {
  const given = { prompt: '5', steps: '5', cfg: '2.5', tiled: 'true', style: '3' }
  assert.deepEqual(reasonsOf(given), [
    ...['steps: wrong_type', 'cfg: wrong_type', 'tiled: wrong_type', 'style: not_one_of'],
  ])
  const { values, problems } = check(given, { areTexts: true })
  assert.deepEqual(problems, [])
  assert.deepEqual(
    [values['prompt'], values['steps'], values['cfg'], values['tiled'], values['style']],
    ['5', 5, 2.5, true, 3],
  )
  assert.deepEqual(reasonsOf({ prompt: 'x', steps: 'many', tiled: 'yes' }, { areTexts: true }), [
    ...['steps: wrong_type', 'tiled: wrong_type'],
  ])
})

test('the names of weights are left to the engines, and files to whoever takes them', () => {
  const { values, files, problems } = check({
    prompt: 'x',
    lora: 'new.safetensors',
    photo: 'https://example.com/a.png',
  })
  assert.deepEqual([values['lora'], files, problems], ['new.safetensors', [['photo', 'https://example.com/a.png']], []])
})

test('thousands of unknown names make a bounded answer', () => {
  const given = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`x${'y'.repeat(500)}${index}`, 1]))
  const { problems } = check(given)
  assert.equal(problems.length, 100)
  assert.ok(problems.every(({ name }) => name.length <= 64))
})

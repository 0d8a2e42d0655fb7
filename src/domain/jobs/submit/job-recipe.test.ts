import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Graph } from '../../../../engine/graph/graph.ts'
import type { JsonObject } from '../../../../lib/json/lossless-json.ts'
import { readTerms, titleOf, toRecipe, toTerm } from './job-origin.ts'

function graphOf(...nodes: readonly (readonly [classType: string, inputs: JsonObject])[]): Graph {
  return new Map(nodes.map(([classType, inputs], index) => [String(index), { classType, inputs, title: null }]))
}

const POSTCARD = graphOf(
  ['CheckpointLoaderSimple', { ckpt_name: 'flux1-dev.safetensors' }],
  ['KSampler', { seed: 1, model: ['0', 0] }],
  ['SaveImage', { filename_prefix: 'user-7/postcard_scene_00012' }],
)

test('jobs that differ in values alone share a recipe', () => {
  const other = graphOf(
    ['CheckpointLoaderSimple', { ckpt_name: 'flux1-dev.safetensors' }],
    ['KSampler', { seed: 2, model: ['0', 0] }],
    ['SaveImage', { filename_prefix: 'user-8/postcard_scene_13' }],
  )
  assert.equal(toRecipe(POSTCARD, null).key, toRecipe(other, null).key)
  assert.equal(toRecipe(POSTCARD, null).title, 'postcard scene')
})

test('a name of its own makes no recipe of its own', () => {
  const [one, two] = [toRecipe(POSTCARD, 'for Ann'), toRecipe(POSTCARD, 'for Bob')]
  assert.equal(one.key, two.key)
  assert.deepEqual([one.title, two.title], ['for Ann', 'for Bob'])
})

test('a recipe names its classes and weights, each once and in order', () => {
  const { terms } = toRecipe(POSTCARD, null)
  assert.deepEqual(readTerms(terms), {
    classes: ['CheckpointLoaderSimple', 'KSampler', 'SaveImage'],
    weights: ['flux1-dev.safetensors'],
  })
  assert.ok(terms.includes(toTerm('class', 'KSampler')))
  assert.ok(!terms.includes(toTerm('class', 'Sampler')))
})

test('the name that an editor gives comes first, then the prefix of files, then a class that says something', () => {
  assert.equal(toRecipe(POSTCARD, 'My\u202e  poster\n').title, 'My poster')
  assert.equal(toRecipe(graphOf(['LoadImage', {}], ['UltimateSDUpscale', {}]), null).title, 'UltimateSDUpscale')
  assert.equal(
    toRecipe(graphOf(['LoadImage', {}], ['SaveImage', { filename_prefix: '00001' }]), null).title,
    'SaveImage',
  )
})

test('what the submitter calls a job is its title, at most 80 characters of it', () => {
  assert.equal(titleOf({ name: 'scene 12' }, 'postcard'), 'scene 12')
  assert.equal(titleOf({ title: 'x'.repeat(500) }, 'postcard').length, 80)
  assert.equal(titleOf({ name: '\u202e' }, 'postcard'), 'postcard')
  assert.equal(titleOf({}, null), '')
})

test('lines in names cannot forge a term, and a recipe is bounded', () => {
  const graph = graphOf(
    ['A\nc:Hidden', {}],
    ...Array.from({ length: 1000 }, (_, index) => [`Class${index}`, {}] as const),
  )
  const { terms } = toRecipe(graph, null)
  assert.ok(!terms.includes(toTerm('class', 'Hidden')))
  assert.ok(terms.length < 16_000)
  const long = graphOf(...Array.from({ length: 400 }, (_, index) => [`${index}${'x'.repeat(190)}`, {}] as const))
  assert.ok(toRecipe(long, null).terms.length < 16_100)
})

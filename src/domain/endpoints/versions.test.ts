import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointInput, VersionRelease } from './endpoint.ts'
import { compareVersions, hashVersion } from './versions.ts'

const base = (name: string) => ({ name, title: name, description: '', isRequired: false, places: [], example: null })
const prompt: EndpointInput = {
  ...{ ...base('prompt'), type: 'text', default: 'x', minLength: 0, maxLength: 100, pattern: null, isMultiline: true },
}
const steps: EndpointInput = { ...base('steps'), type: 'integer', default: 20, minimum: 1, maximum: 50, step: 1 }
const style: EndpointInput = {
  ...base('style'),
  type: 'choice',
  default: 'oil',
  choices: ['oil', 'ink'],
  isOpen: false,
}
const photo: EndpointInput = { ...base('photo'), type: 'file', kind: 'image', maxBytes: null, maxPixels: null }
const seed: EndpointInput = { ...base('seed'), type: 'seed', minimum: 0, maximum: 18446744073709551615n }
const image = { name: 'image', title: 'Image', nodeId: '9', kind: 'image' } as const

function versionOf(inputs: readonly EndpointInput[], graph = '{}') {
  return { graph, inputs, outputs: [image] }
}

const differences = (older: readonly EndpointInput[], newer: readonly EndpointInput[]) =>
  compareVersions(versionOf(older), versionOf(newer)).map(
    ({ isBreaking, message }) => `${isBreaking ? '!' : ''}${message}`,
  )

const CHANGES: [what: string, older: EndpointInput[], newer: EndpointInput[], told: string[]][] = [
  ['nothing', [prompt, steps], [steps, prompt], []],
  ['an input that is gone', [prompt, steps], [prompt], ['!steps is gone']],
  ['a new one', [prompt], [prompt, steps], ['steps is new']],
  ['a new one that is required', [], [{ ...photo, isRequired: true }], ['!photo is new, and required']],
  ['one that becomes required', [photo], [{ ...photo, isRequired: true }], ['!photo is now required']],
  ['another type', [steps], [{ ...prompt, name: 'steps' }], ['!steps was integer and is text']],
  [
    'a seed instead of a number',
    [{ ...steps, name: 'seed', minimum: 0, maximum: null, default: null }],
    [{ ...seed, maximum: null }],
    [],
  ],
  ['another kind of file', [photo], [{ ...photo, kind: 'video' }], ['!photo was a file (image) and is a file (video)']],
  ['a lower maximum', [steps], [{ ...steps, maximum: 30 }], ['!steps: maximum was 50 and is 30']],
  ['a higher maximum', [steps], [{ ...steps, maximum: 80 }], ['steps: maximum was 50 and is 80']],
  [
    'a maximum where there was none',
    [photo],
    [{ ...photo, maxPixels: 1000 }],
    ['!photo: maxPixels was open and is 1000'],
  ],
  ['a maximum that is gone', [{ ...photo, maxBytes: 5 }], [photo], ['photo: maxBytes was 5 and is open']],
  ['a higher minimum', [steps], [{ ...steps, minimum: 2 }], ['!steps: minimum was 1 and is 2']],
  ['fewer choices', [style], [{ ...style, choices: ['oil'] }], ['!style no longer takes ink']],
  ['more choices', [style], [{ ...style, choices: ['oil', 'ink', 'pen'] }], ['style also takes pen']],
  ['a pattern', [prompt], [{ ...prompt, pattern: 'a+' }], ['!prompt must match a+']],
  ['another default', [steps], [{ ...steps, default: 25 }], ['steps has another default']],
]
for (const [what, older, newer, told] of CHANGES)
  test(`${what}: ${told.length === 0 ? 'is no difference' : told.some((each) => each.startsWith('!')) ? 'breaks callers' : 'breaks nobody'}`, () => {
    assert.deepEqual(differences(older, newer), told)
  })

test('an output that is gone, or of another kind, breaks callers; another graph does not', () => {
  const outputs = (...given: readonly object[]) => ({ ...versionOf([]), outputs: given as (typeof image)[] })
  const tell = (...pair: Parameters<typeof compareVersions>) =>
    compareVersions(...pair).map(({ kind, isBreaking }) => [kind, isBreaking])
  assert.deepEqual(tell(outputs(image), outputs()), [['output', true]])
  assert.deepEqual(tell(outputs(image), outputs({ ...image, kind: 'video' })), [['output', true]])
  assert.deepEqual(tell(outputs(), outputs(image)), [['output', false]])
  assert.deepEqual(tell(versionOf([], '{}'), versionOf([], '{"1":{}}')), [['graph', false]])
})

test('the same content has the same hash, and any other another', () => {
  const hashes = [
    versionOf([seed]),
    versionOf([seed]),
    versionOf([{ ...seed, maximum: 18446744073709551614n }]),
    versionOf([seed], '{ }'),
  ]
  const [one, same, ...others] = hashes.map(hashVersion)
  assert.equal(one, same)
  assert.equal(new Set([one, ...others]).size, 3)
})

test('the same content on another release, or pinned to it, is another version that breaks nobody', () => {
  const on = (release?: VersionRelease) => ({
    ...versionOf([seed]),
    required: { classes: [], weights: [], ...(release && { release }) },
  })
  const first = { deployment: 'dep-a', version: 1, isPinned: false }
  const versions = [on(), on(first), on({ ...first, version: 2 }), on({ ...first, isPinned: true })]
  assert.equal(new Set(versions.map(hashVersion)).size, 4)
  // As it was before there were releases.
  assert.equal(hashVersion(versionOf([seed])), hashVersion(on()))
  assert.deepEqual(
    versions.map((version) =>
      compareVersions(on(first), version).map(({ isBreaking, message }) => [isBreaking, message]),
    ),
    [
      [[false, 'the release was 1 of dep-a and is none']],
      [],
      [[false, 'the release was 1 of dep-a and is 2 of dep-a']],
      [[false, 'the release was 1 of dep-a and is 1 of dep-a, and no other']],
    ],
  )
})

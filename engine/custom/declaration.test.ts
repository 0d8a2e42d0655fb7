import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readDeclaration } from './declaration.ts'
import { choice, defineNode, float, image, int, optional, string } from './nodes-api.ts'

const plain = { classType: 'Plain', outputs: { n: 'int' }, run: () => ({ n: 1 }) }

test('a definition becomes plain data with its defaults filled in', () => {
  const node = defineNode({
    classType: 'Tint',
    inputs: { image: image(), colour: choice(['red', 'blue']), note: optional(string({ default: undefined })) },
    outputs: { image: 'image', palette: 'PALETTE' },
    run: ({ image: given }) => ({ image: given, palette: null }),
  })
  const declaration = readDeclaration(node)
  assert.deepEqual(structuredClone(declaration), declaration)
  assert.deepEqual(
    [declaration.displayName, declaration.category, declaration.isCached, declaration.isOutputNode],
    ['Tint', 'custom', true, false],
  )
  assert.deepEqual(declaration.inputs[1], {
    name: 'colour',
    kind: 'choice',
    options: {},
    choices: ['red', 'blue'],
    type: '',
    isOptional: false,
  })
  assert.deepEqual([declaration.inputs[2].isOptional, declaration.inputs[2].options], [true, {}])
  assert.deepEqual(declaration.outputs, [
    { name: 'image', kind: 'image', type: 'IMAGE' },
    { name: 'palette', kind: 'type', type: 'PALETTE' },
  ])
})

test('the compiler sees what does not fit', () => {
  const name = { classType: 'Typed', outputs: { n: 'int' } } as const
  // @ts-expect-error an output is missing
  defineNode({ ...name, run: () => ({}) })
  // @ts-expect-error an output is of another kind
  defineNode({ ...name, run: () => ({ n: 'one' }) })
  // @ts-expect-error an input that may be left out may be undefined
  defineNode({ ...name, inputs: { a: optional(int()) }, run: ({ a }) => ({ n: a + 1 }) })
  // @ts-expect-error a default must be one of the choices
  choice(['red', 'blue'], { default: 'green' })
  defineNode({ ...name, inputs: { a: choice(['x', 'y']) }, run: ({ a }) => ({ n: { x: 1, y: 2 }[a] }) })
})

const MISTAKES: Readonly<Record<string, readonly [definition: unknown, message: RegExp]>> = {
  'no object': [null, /was given no object/],
  'no class type': [{ ...plain, classType: '' }, /needs a classType/],
  'a class type with a line end': [{ ...plain, classType: 'A\nB' }, /needs a classType/],
  'a misspelled member': [{ ...plain, input: {} }, /Error: node Plain: unknown member input; there are classType/],
  'no function': [{ ...plain, run: 1 }, /run must be a function/],
  'no outputs': [{ ...plain, outputs: {} }, /no outputs and is not an output node/],
  'an unknown output kind': [{ ...plain, outputs: { n: 'Integer' } }, /output n: give one of image/],
  'an output of no name': [{ ...plain, outputs: { 'a.b': 'int' } }, /outputs: "a\.b" is not a name/],
  'an input that is a text': [{ ...plain, inputs: { a: 'IMAGE' } }, /input a: declare it with a function/],
  'an unknown option': [
    { ...plain, inputs: { a: { kind: 'int', options: { mim: 1 } } } },
    /unknown option mim; int has/,
  ],
  'an option of a wrong type': [
    { ...plain, inputs: { a: { kind: 'int', options: { min: 0.5 } } } },
    /option min has a wrong/,
  ],
  'a default outside': [{ ...plain, inputs: { a: float({ default: 2, max: 1 }) } }, /default is outside min and max/],
  'min above max': [{ ...plain, inputs: { a: int({ min: 2, max: 1 }) } }, /max is below min/],
  'no choices': [{ ...plain, inputs: { a: choice([]) } }, /needs a list of words/],
  'a default that is no choice': [
    { ...plain, inputs: { a: { ...choice(['x']), options: { default: 'y' } } } },
    /the default is not among the choices/,
  ],
  'a category that is no text': [{ ...plain, category: 5 }, /category must be a text/],
  'too many inputs': [
    { ...plain, inputs: Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`i${i}`, int()])) },
    /has 101 inputs; at most 100/,
  ],
}

for (const [mistake, [definition, message]] of Object.entries(MISTAKES)) {
  test(`${mistake} is refused`, () => assert.throws(() => readDeclaration(definition), message))
}

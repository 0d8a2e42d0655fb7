import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Value } from '../values/value.ts'
import { type EngineNode, values } from './define-node.ts'
import {
  autogrow,
  defineDynamicListNode,
  defineDynamicNode,
  dynamicCombo,
  MATCHED_OUTPUT,
  matchType,
} from './dynamic-node.ts'
import { combo, int, string } from './input-kinds.ts'
import { readInputs } from './node-call.ts'
import type { CallResult, NodeContext } from './node-context.ts'

const facts = {
  displayName: 'Test',
  category: 'test',
  description: 'For tests.',
  style: 'schema',
  cost: 'inline',
} as const

function run(node: EngineNode, inputs: Record<string, Value>): readonly Value[] {
  const result = node.run(readInputs(node, inputs), {} as NodeContext) as CallResult
  return result.outputs as readonly Value[]
}

const counts = autogrow({ member: 'n', kind: int({}), naming: { prefix: 'n', max: 3 }, min: 1 })

const grown = defineDynamicNode({
  ...facts,
  classType: 'Grown',
  required: { counts },
  outputs: [{ type: 'STRING' }],
  run: ({ counts }) =>
    values(
      Object.entries(counts)
        .map(([name, count]) => `${name}=${count + 1}`)
        .join(' '),
    ),
})

test('a growing group is declared as a template and arrives as one object in the order of its names', () => {
  assert.deepEqual(grown.definition.input.required?.counts, [
    'COMFY_AUTOGROW_V3',
    { template: { input: { required: { n: ['INT', {}] } }, prefix: 'n', min: 1, max: 3 } },
  ])
  assert.deepEqual(run(grown, { 'counts.n2': 5, 'counts.n0': 1 }), ['n0=2 n2=6'])
  assert.deepEqual(run(grown, {}), [''])
})

test('members of a group are read like other inputs', () => {
  assert.throws(() => run(grown, { 'counts.n0': 'x' }), { exceptionType: 'TypeError', message: /counts\.n0/ })
})

const chooser = defineDynamicNode({
  ...facts,
  classType: 'Chooser',
  required: {
    format: dynamicCombo({
      png: { required: { depth: combo(['8-bit', '16-bit']) } },
      video: {
        optional: { codec: dynamicCombo({ auto: {}, h264: { required: { crf: int({}) } } }) },
      },
    }),
  },
  outputs: [{ type: 'STRING' }],
  run({ format }) {
    if (format.key === 'png') return values(`png ${format.inputs.depth}`)
    const { codec } = format.inputs
    return values(codec?.key === 'h264' ? `h264 ${codec.inputs.crf}` : `video ${codec?.key ?? 'without codec'}`)
  },
})

test('the inputs of a choice are declared under it, in the order of the options', () => {
  const [type, options] = chooser.definition.input.required?.format ?? []
  assert.equal(type, 'COMFY_DYNAMICCOMBO_V3')
  const depth = ['COMBO', { multiselect: false, options: ['8-bit', '16-bit'] }]
  const codecs = [
    { key: 'auto', inputs: { required: {} } },
    { key: 'h264', inputs: { required: { crf: ['INT', {}] } } },
  ]
  assert.deepEqual(options, {
    options: [
      { key: 'png', inputs: { required: { depth } } },
      { key: 'video', inputs: { required: {}, optional: { codec: ['COMFY_DYNAMICCOMBO_V3', { options: codecs }] } } },
    ],
  })
})

test('a choice arrives with its inputs, nested ones too', () => {
  assert.deepEqual(run(chooser, { format: 'png', 'format.depth': '16-bit' }), ['png 16-bit'])
  assert.deepEqual(run(chooser, { format: 'video' }), ['video without codec'])
  assert.deepEqual(run(chooser, { format: 'video', 'format.codec': 'h264', 'format.codec.crf': 23 }), ['h264 23'])
})

test('a choice that is missing or unknown counts as a missing argument', () => {
  const missing = { exceptionType: 'TypeError', message: "missing 1 required positional argument: 'format'" }
  assert.throws(() => run(chooser, {}), missing)
  assert.throws(() => run(chooser, { format: 'gif' }), missing)
  assert.throws(() => run(chooser, { format: 'png' }), /format\.depth/)
})

const lists = defineDynamicListNode({
  ...facts,
  classType: 'Lists',
  required: {
    prefix: string({}),
    parts: autogrow({ member: 'p', kind: string({}), naming: { names: ['a', 'b'] }, min: 0 }),
  },
  outputs: [{ type: MATCHED_OUTPUT, isList: true }],
  outputMatchTypes: ['t'],
  run: ({ prefix, parts }) => values([...prefix, ...Object.values(parts).flat()]),
})

test('a node that takes lists gets its groups as lists', () => {
  assert.deepEqual(run(lists, { prefix: ['x'], 'parts.b': ['3'], 'parts.a': ['1', '2'] }), [['x', '1', '2', '3']])
  assert.deepEqual(lists.definition.output_matchtypes, ['t'])
})

test('an input that follows a template takes anything', () => {
  const kind = matchType({ id: 't', allowedTypes: 'IMAGE,MASK' }, { lazy: true })
  const template = { template_id: 't', allowed_types: 'IMAGE,MASK' }
  assert.deepEqual(kind.spec, ['COMFY_MATCHTYPE_V3', { lazy: true, template }])
  assert.equal(kind.read('anything', 'x'), 'anything')
})

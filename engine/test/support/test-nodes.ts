/** Node classes that exist for tests only: equivalents of ComfyUI's test pack, and nodes that misbehave on purpose. */

import { type JsonValue, NumberText } from '../../../lib/json/lossless-json.ts'
import { defineListNode, defineNode, type EngineNode, values } from '../../node/define-node.ts'
import { anything, boolean, float, int, string } from '../../node/input-kinds.ts'
import { boundCpu } from '../../python/text-limit.ts'
import { Tensor } from '../../tensor/tensor.ts'
import { Blocker, type Value } from '../../values/value.ts'
import { testExecutionBlocker, testFacts, testLazyMixImages, testSyncError } from './comfy-test-pack.ts'

/** A value in the form of the goldens. */
function dump(value: Value): JsonValue {
  if (value instanceof Tensor) {
    const { buffer, byteOffset, byteLength } = value.data
    return {
      kind: 'tensor',
      shape: [...value.shape],
      f32_b64: Buffer.from(buffer, byteOffset, byteLength).toString('base64'),
    }
  }
  if (value === null) return { kind: 'NoneType', value: null }
  if (typeof value === 'string') return { kind: 'str', value }
  if (typeof value === 'boolean') return { kind: 'bool', value }
  if (value instanceof NumberText || (typeof value === 'number' && !Number.isInteger(value))) {
    return { kind: 'float', value: Number(value instanceof NumberText ? value.text : value) }
  }
  if (typeof value === 'number' || typeof value === 'bigint') return { kind: 'int', value }
  if (Array.isArray(value)) return { kind: 'list', value: value.map(dump) }
  if (value instanceof Blocker) return { kind: 'blocker', value: value.message }
  return { kind: 'dict', value: Object.fromEntries(Object.entries(value).map(([key, part]) => [key, dump(part)])) }
}

/** Reports everything that arrives at its input, as one list. */
const testDump = defineListNode({
  ...testFacts,
  classType: 'TestDump',
  displayName: 'TestDump',
  required: { source: anything() },
  outputs: [],
  isOutputNode: true,
  cost: 'inline',
  run: ({ source }) => ({
    outputs: [],
    report: { dump: source.map((value) => ({ kind: 'value', value: dump(value) })) },
  }),
})

const testList = defineNode({
  ...testFacts,
  classType: 'TestList',
  displayName: 'TestList',
  required: { prefix: string(), count: int() },
  outputs: [{ type: 'STRING', isList: true }],
  cost: 'inline',
  run: ({ prefix, count }) => values(Array.from({ length: count }, (_, index) => `${prefix}${index}`)),
})

const testShow = defineNode({
  ...testFacts,
  classType: 'TestShow',
  displayName: 'TestShow',
  required: { text: string() },
  outputs: [{ type: 'STRING' }],
  isOutputNode: true,
  cost: 'inline',
  run: ({ text }) => ({ outputs: [text], report: { text: [{ kind: 'value', value: text }] } }),
})

/** Makes files of these sizes. */
const testFiles = defineNode({
  ...testFacts,
  classType: 'TestFiles',
  displayName: 'TestFiles',
  required: { sizes: string() },
  outputs: [],
  isOutputNode: true,
  cost: 'compute',
  run: ({ sizes }) => ({
    outputs: [],
    report: {
      images: sizes.split(' ').map((size, index) => ({
        kind: 'file',
        filename: `${index}.bin`,
        subfolder: '',
        folder: 'output',
        contentType: 'application/octet-stream',
        bytes: fileBytes(Number(size), index),
      })),
    },
  }),
})

export function fileBytes(size: number, seed: number): Uint8Array<ArrayBuffer> {
  // Of a length that no piece or page is a multiple of: bytes in the wrong place are seen.
  const pattern = Uint8Array.from({ length: 65_521 }, (_, at) => (at ^ (at >>> 8)) + seed)
  const bytes = new Uint8Array(size)
  for (let at = 0; at < size; at += pattern.length) bytes.set(pattern.subarray(0, size - at), at)
  return bytes
}

const solidMask = defineNode({
  ...testFacts,
  classType: 'TestMask',
  displayName: 'TestMask',
  required: { value: float(), width: int(), height: int() },
  outputs: [{ type: 'MASK' }],
  cost: 'inline',
  run({ value, width, height }, { allocate }) {
    const result = allocate([1, height, width])
    result.data.fill(value)
    return { outputs: [result] }
  },
})

const testSwitch = defineNode({
  ...testFacts,
  classType: 'TestSwitch',
  displayName: 'TestSwitch',
  required: { switch: boolean(), on_false: anything({ lazy: true }), on_true: anything({ lazy: true }) },
  outputs: [{ type: '*' }],
  cost: 'inline',
  askLazy: ({ switch: isOn }) => [isOn ? 'on_true' : 'on_false'],
  run: ({ switch: isOn, on_false: no, on_true: yes }) => values(isOn ? yes : no),
})

const testExpansion = defineNode({
  ...testFacts,
  classType: 'TestMixedExpansionReturns',
  displayName: 'TestMixedExpansionReturns',
  required: { input1: float() },
  outputs: [{ type: 'IMAGE' }, { type: 'IMAGE' }],
  cost: 'compute',
  run({ input1 }, context) {
    const graph = context.newGraph()
    const size = { width: 16, height: 16, batch_size: 1 }
    const white = context.allocate([1, 1, 1, 3])
    white.data.fill(1)
    if (input1 <= 0.2) return { outputs: [white, white] }
    const mixMask = graph.node('TestMask', { value: input1, width: 16, height: 16 })
    const black = graph.node('EmptyImage', { ...size, color: 0 })
    const bright = graph.node('EmptyImage', { ...size, color: 0xffffff })
    const mix = graph.node('TestLazyMixImages', { image1: black(0), image2: bright(0), mask: mixMask(0) })
    return { outputs: [mix(0), white], expand: graph }
  },
})

const testFailingExpansion = defineNode({
  ...testFacts,
  classType: 'TestFailingExpansion',
  displayName: 'TestFailingExpansion',
  outputs: [{ type: '*' }],
  cost: 'inline',
  run(_inputs, context) {
    const graph = context.newGraph()
    const failing = graph.node('TestSyncError', { value: 1 })
    return { outputs: [failing(0)], expand: graph }
  },
})

const demoSteps = defineNode({
  ...testFacts,
  classType: 'DemoSteps',
  displayName: 'DemoSteps',
  required: { steps: int(), preview: boolean() },
  outputs: [{ type: 'IMAGE' }],
  cost: 'compute',
  run({ steps, preview }, context) {
    for (let step = 1; step <= steps; step++) {
      context.progress(step, steps)
      if (preview) context.preview('image/jpeg', new Uint8Array([step]))
      context.log(`step ${step}\n`)
    }
    context.text('hello text')
    const result = context.allocate([1, 8, 8, 3])
    result.data.fill(0)
    return { outputs: [result] }
  },
})

/** Works in a loop until it is cancelled. */
const testEndless = defineNode({
  ...testFacts,
  classType: 'TestEndless',
  displayName: 'TestEndless',
  outputs: [{ type: 'INT' }],
  cost: 'compute',
  run(_inputs, context) {
    context.log('started')
    for (;;) context.checkpoint()
  },
})

/** Works without end and never looks up. */
const testBlock = defineNode({
  ...testFacts,
  classType: 'TestBlock',
  displayName: 'TestBlock',
  required: { where: string() },
  outputs: [{ type: 'INT' }],
  cost: ({ where }) => (where === 'inline' ? 'inline' : 'compute'),
  run() {
    for (;;);
  },
})

/** Makes a picture of 24 MiB as soon as nobody wants it any more. */
const testLate = defineNode({
  ...testFacts,
  classType: 'TestLate',
  displayName: 'TestLate',
  outputs: [{ type: 'IMAGE' }],
  cost: 'inline',
  async run(_inputs, { allocate, checkpoint, log }) {
    log('started')
    for (let isWanted = true; isWanted; await new Promise((resolve) => setTimeout(resolve, 5))) {
      try {
        checkpoint()
      } catch {
        isWanted = false
      }
    }
    return { outputs: [allocate([2, 1024, 1024, 3])] }
  },
})

/** Like TestBlock, of a class that has a few seconds of processor time. */
const testBusyText = boundCpu({ ...testBlock, classType: 'TestBusyText' })

/** Many values become one that holds them. */
const testFold = defineListNode({
  ...testFacts,
  classType: 'TestFold',
  displayName: 'TestFold',
  required: { values: anything({}) },
  outputs: [{ type: '*' }],
  cost: 'inline',
  run: ({ values }) => ({ outputs: [[...values]] }),
})

const testExit = defineNode({
  ...testFacts,
  classType: 'TestExit',
  displayName: 'TestExit',
  required: { where: string() },
  outputs: [{ type: 'INT' }],
  cost: ({ where }) => (where === 'inline' ? 'inline' : 'compute'),
  run: () => process.exit(3),
})

const testNonsense = defineNode({
  ...testFacts,
  classType: 'TestNonsense',
  displayName: 'TestNonsense',
  required: { kind: string() },
  outputs: [{ type: 'INT' }],
  cost: 'compute',
  run({ kind }) {
    if (kind === 'nothing') return undefined as never
    if (kind === 'function') return { outputs: [(() => 1) as never] }
    if (kind === 'foreign memory') return { outputs: [new Tensor([1], new Float32Array(new SharedArrayBuffer(4)))] }
    return { outputs: [] }
  },
})

const testCounter = defineNode({
  ...testFacts,
  classType: 'TestPlusOne',
  displayName: 'TestPlusOne',
  required: { value: int() },
  outputs: [{ type: 'INT' }],
  cost: 'inline',
  run: ({ value }) => values(value + 1),
})

export const nodes: readonly EngineNode[] = [
  testDump,
  testList,
  testFiles,
  testShow,
  testSyncError,
  testExecutionBlocker,
  solidMask,
  testLazyMixImages,
  testSwitch,
  testExpansion,
  testFailingExpansion,
  demoSteps,
  testEndless,
  testExit,
  testBlock,
  testLate,
  testBusyText,
  testFold,
  testNonsense,
  testCounter,
]

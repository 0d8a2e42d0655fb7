/** Constants as nodes: each hands its value on, integers with all their digits. */
import { defineNode, values } from '../../node/define-node.ts'
import { boolean, float, int, MAX_RESOLUTION, string, wideInt } from '../../node/input-kinds.ts'
import type { Value } from '../../values/value.ts'

// ComfyUI's sys.maxsize; beyond what a double holds.
const LARGEST = 9_223_372_036_854_775_807n

const facts = { category: 'utilities/primitive', style: 'schema', cost: 'inline' } as const
const handOn = ({ value }: { readonly value: Value }) => values(value)

export const primitiveInt = defineNode({
  ...facts,
  classType: 'PrimitiveInt',
  displayName: 'Int',
  description: 'An integer of up to 64 bits.',
  required: { value: wideInt({ min: -LARGEST, max: LARGEST, control_after_generate: 'fixed' }) },
  outputs: [{ type: 'INT' }],
  run: handOn,
})

export const primitiveFloat = defineNode({
  ...facts,
  classType: 'PrimitiveFloat',
  displayName: 'Float',
  description: 'A number with a fraction.',
  required: { value: float({ min: -LARGEST, max: LARGEST, step: 0.1 }) },
  outputs: [{ type: 'FLOAT' }],
  run: handOn,
})

export const primitiveString = defineNode({
  ...facts,
  classType: 'PrimitiveString',
  displayName: 'Text',
  description: 'A line of text.',
  required: { value: string({ multiline: false }) },
  outputs: [{ type: 'STRING' }],
  run: handOn,
})

export const primitiveStringMultiline = defineNode({
  ...facts,
  classType: 'PrimitiveStringMultiline',
  displayName: 'Text (Multiline)',
  description: 'Text of several lines.',
  required: { value: string({ multiline: true }) },
  outputs: [{ type: 'STRING' }],
  run: handOn,
})

export const primitiveBoolean = defineNode({
  ...facts,
  classType: 'PrimitiveBoolean',
  displayName: 'Boolean',
  description: 'Yes or no.',
  required: { value: boolean({}) },
  outputs: [{ type: 'BOOLEAN' }],
  run: handOn,
})

export const seedNode = defineNode({
  classType: 'SeedNode',
  displayName: 'Seed',
  category: 'utilities',
  description: 'A seed that several nodes can share.',
  style: 'schema',
  required: { seed: wideInt({ min: 0, max: 2n ** 63n - 1n, control_after_generate: 'fixed' }) },
  outputs: [{ type: 'INT', name: 'seed' }],
  cost: 'inline',
  run: ({ seed }) => values(seed),
})

const offset = int({ default: 0, min: 0, max: MAX_RESOLUTION })
const size = int({ default: 512, min: 1, max: MAX_RESOLUTION })

export const primitiveBoundingBox = defineNode({
  classType: 'PrimitiveBoundingBox',
  displayName: 'Bounding Box',
  category: 'utilities/primitive',
  description: 'A box in pixels: where its upper left corner is, how wide and how high it is.',
  style: 'schema',
  required: { x: offset, y: offset, width: size, height: size },
  outputs: [{ type: 'BOUNDING_BOX' }],
  cost: 'inline',
  run: ({ x, y, width, height }) => values({ x, y, width, height }),
})

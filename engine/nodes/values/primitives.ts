/** Constants as nodes: each hands its value on, integers with all their digits. */
import { defineNode, values } from '../../node/define-node.ts'
import { boolean, float, int, string, wideInt } from '../../node/input-kinds.ts'

// ComfyUI's sys.maxsize; beyond what a double holds.
const LARGEST = 9_223_372_036_854_775_807n

const category = 'utilities/primitive'

export const primitiveInt = defineNode({
  classType: 'PrimitiveInt',
  displayName: 'Int',
  category,
  description: 'An integer of up to 64 bits.',
  style: 'schema',
  required: { value: wideInt({ min: -LARGEST, max: LARGEST, control_after_generate: 'fixed' }) },
  outputs: [{ type: 'INT' }],
  cost: 'inline',
  run: ({ value }) => values(value),
})

export const primitiveFloat = defineNode({
  classType: 'PrimitiveFloat',
  displayName: 'Float',
  category,
  description: 'A number with a fraction.',
  style: 'schema',
  required: { value: float({ min: -LARGEST, max: LARGEST, step: 0.1 }) },
  outputs: [{ type: 'FLOAT' }],
  cost: 'inline',
  run: ({ value }) => values(value),
})

export const primitiveString = defineNode({
  classType: 'PrimitiveString',
  displayName: 'Text',
  category,
  description: 'A line of text.',
  style: 'schema',
  required: { value: string({ multiline: false }) },
  outputs: [{ type: 'STRING' }],
  cost: 'inline',
  run: ({ value }) => values(value),
})

export const primitiveStringMultiline = defineNode({
  classType: 'PrimitiveStringMultiline',
  displayName: 'Text (Multiline)',
  category,
  description: 'Text of several lines.',
  style: 'schema',
  required: { value: string({ multiline: true }) },
  outputs: [{ type: 'STRING' }],
  cost: 'inline',
  run: ({ value }) => values(value),
})

export const primitiveBoolean = defineNode({
  classType: 'PrimitiveBoolean',
  displayName: 'Boolean',
  category,
  description: 'Yes or no.',
  style: 'schema',
  required: { value: boolean({}) },
  outputs: [{ type: 'BOOLEAN' }],
  cost: 'inline',
  run: ({ value }) => values(value),
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

const MAX_RESOLUTION = 16384
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

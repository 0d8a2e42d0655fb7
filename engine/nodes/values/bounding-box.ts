import { defineNode, values } from '../../node/define-node.ts'
import { int } from '../../node/input-kinds.ts'

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

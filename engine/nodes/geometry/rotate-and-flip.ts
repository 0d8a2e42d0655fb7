/** Images rotated by quarter turns, and mirrored. */
import { costOf, defineNode } from '../../node/define-node.ts'
import { combo, image } from '../../node/input-kinds.ts'
import { mirrorLeftRight, mirrorUpDown, rotate } from '../../tensor/rotate-and-mirror.ts'
import { QUARTER_TURNS, ROTATIONS } from './quarter-turns.ts'

export const imageRotate = defineNode({
  classType: 'ImageRotate',
  displayName: 'Rotate Image',
  category: 'image/transform',
  description: 'Turns images clockwise by quarter turns.',
  style: 'schema',
  required: { image: image({}), rotation: combo(ROTATIONS) },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ image: tensor }) => costOf(tensor.data.length),
  run({ image: tensor, rotation }, context) {
    const quarterTurns = QUARTER_TURNS[rotation]
    return { outputs: [quarterTurns === 0 ? tensor : rotate(tensor, quarterTurns, context)] }
  },
})

export const imageFlip = defineNode({
  classType: 'ImageFlip',
  displayName: 'Flip Image',
  category: 'image/transform',
  description: 'Mirrors images: upside down, or left and right exchanged.',
  style: 'schema',
  required: { image: image({}), flip_method: combo(['x-axis: vertically', 'y-axis: horizontally']) },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ image: tensor }) => costOf(tensor.data.length),
  run({ image: tensor, flip_method: method }, context) {
    const mirror = method === 'x-axis: vertically' ? mirrorUpDown : mirrorLeftRight
    return { outputs: [mirror(tensor, context)] }
  },
})

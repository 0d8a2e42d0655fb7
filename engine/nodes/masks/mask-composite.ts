/** Two masks combined, by arithmetic or by logic. */
import { costOf, defineNode } from '../../node/define-node.ts'
import { combo, mask } from '../../node/input-kinds.ts'
import { broadcastShape } from '../../tensor/broadcast.ts'
import { clampToUnit, mapBlocks } from '../../tensor/map-pixels.ts'
import { asMaskBatch, position } from './mask-kinds.ts'

const OPERATIONS = ['multiply', 'add', 'subtract', 'and', 'or', 'xor'] as const
type Operation = (typeof OPERATIONS)[number]

// A mask value counts as set from where it rounds to something else than 0; halves round to even.
const isSet = (value: number) => value > 0.5 || value < -0.5

type Row = Float32Array
type CombineRow = (out: Row, destination: Row, source: Row) => void

/** Whole rows at a time: a call per value would cost more than the arithmetic. */
const COMBINE: Readonly<Record<Operation, CombineRow>> = {
  multiply(out, a, b) {
    for (let i = 0; i < out.length; i++) out[i] = clampToUnit(a[i] * b[i])
  },
  add(out, a, b) {
    for (let i = 0; i < out.length; i++) out[i] = clampToUnit(a[i] + b[i])
  },
  subtract(out, a, b) {
    for (let i = 0; i < out.length; i++) out[i] = clampToUnit(a[i] - b[i])
  },
  and(out, a, b) {
    for (let i = 0; i < out.length; i++) out[i] = isSet(a[i]) && isSet(b[i]) ? 1 : 0
  },
  or(out, a, b) {
    for (let i = 0; i < out.length; i++) out[i] = isSet(a[i]) || isSet(b[i]) ? 1 : 0
  },
  xor(out, a, b) {
    for (let i = 0; i < out.length; i++) out[i] = isSet(a[i]) !== isSet(b[i]) ? 1 : 0
  },
}

export const maskComposite = defineNode({
  classType: 'MaskComposite',
  displayName: 'Combine Masks',
  category: 'image/mask',
  description: 'Lays one mask over another at a place, by arithmetic or by logic.',
  style: 'schema',
  required: {
    destination: mask({}),
    source: mask({}),
    ...position(),
    operation: combo(OPERATIONS),
  },
  outputs: [{ type: 'MASK' }],
  cost: ({ destination }) => costOf(destination.data.length * 2),
  run({ destination, source, x, y, operation }, context) {
    const below = asMaskBatch(destination)
    const above = asMaskBatch(source)
    const [batch, height, width] = below.shape
    const [sources, sourceHeight, sourceWidth] = above.shape
    broadcastShape([batch, 1, 1], [sources, 1, 1])
    const result = mapBlocks(below, context, (from, to, { start, end }) => {
      for (let i = start; i < end; i++) to[i] = clampToUnit(from[i])
    })
    const combine = COMBINE[operation]
    const columns = Math.max(0, Math.min(sourceWidth, width - x))
    const rows = columns === 0 ? 0 : Math.max(0, Math.min(sourceHeight, height - y))
    for (let row = 0; row < batch * rows; row++) {
      context.checkpoint()
      const index = Math.floor(row / rows)
      const line = row % rows
      const at = (index * height + y + line) * width + x
      const from = ((sources === 1 ? 0 : index) * sourceHeight + line) * sourceWidth
      const end = at + columns
      combine(result.data.subarray(at, end), below.data.subarray(at, end), above.data.subarray(from, from + columns))
    }
    return { outputs: [result] }
  },
})

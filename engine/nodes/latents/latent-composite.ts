/** One latent laid over another, with edges that fade. */
import { costOf, defineNode } from '../../node/define-node.ts'
import { int, MAX_RESOLUTION } from '../../node/input-kinds.ts'
import { copyInto } from '../../tensor/batch-axis.ts'
import { broadcastShape, expandTo } from '../../tensor/broadcast.ts'
import { type Paste, pastePicture } from '../../tensor/compose/paste.ts'
import { planeSize } from '../../tensor/resize/resize-planes.ts'
import { elementCount, type PixelWork } from '../../tensor/tensor.ts'
import { sliceOf } from '../../tensor/window.ts'
import { LATENT_SCALE, latent, withSamples } from './latent.ts'

const offset = () => int({ default: 0, min: 0, max: MAX_RESOLUTION, step: 8 })

interface Edge {
  readonly length: number
  readonly feather: number
  /** Whether each end fades; an end that lies on the destination's border does not. */
  readonly fadesIn: boolean
  readonly fadesOut: boolean
}

/** Weights along one axis. A feather longer than the axis wraps round its far end, as Python's negative indexes do. */
function edgeWeights({ length, feather, fadesIn, fadesOut }: Edge): Float64Array {
  const weights = new Float64Array(length).fill(1)
  for (let line = 0; line < feather; line++) {
    const weight = (1 / feather) * (line + 1)
    if (fadesIn && line < length) weights[line] *= weight
    if (!fadesOut) continue
    const { from, count } = sliceOf(length - 1 - line, length - line, length)
    if (count > 0) weights[from] *= weight
  }
  return weights
}

function featherMask(columns: Float64Array, rows: Float64Array, { allocate, checkpoint }: PixelWork): Paste['mask'] {
  const [width, height] = [columns.length, rows.length]
  const { data } = allocate([height, width])
  for (let y = 0; y < height; y++) {
    checkpoint()
    for (let x = 0; x < width; x++) data[y * width + x] = columns[x] * rows[y]
  }
  return { data, start: 0, width, height }
}

interface Placing {
  readonly at: number
  readonly size: number
  readonly room: number
  readonly feather: number
}

function weightsOf({ at, size, room, feather }: Placing): Float64Array {
  const length = Math.max(0, Math.min(size, room - at))
  return edgeWeights({ length, feather, fadesIn: at !== 0, fadesOut: at + length < room })
}

export const latentComposite = defineNode({
  classType: 'LatentComposite',
  displayName: 'Latent Composite',
  category: 'model/latent',
  description: 'Lays one latent over another at a place in the picture, with soft edges if wanted.',
  style: 'classic',
  required: { samples_to: latent(), samples_from: latent(), x: offset(), y: offset(), feather: offset() },
  outputs: [{ type: 'LATENT' }],
  cost: ({ samples_to, samples_from }) => costOf(samples_to.samples.data.length + samples_from.samples.data.length),
  run({ samples_to: given, samples_from, x, y, feather: softness }, context) {
    const below = given.samples
    const from = planeSize(samples_from.samples)
    const to = planeSize(below)
    const leading = below.shape.slice(0, -2)
    broadcastShape(leading, samples_from.samples.shape.slice(0, -2))
    const above = expandTo(samples_from.samples, [...leading, from.height, from.width], context)
    const [left, top, feather] = [x, y, softness].map((pixels) => Math.floor(pixels / LATENT_SCALE))
    const columns = weightsOf({ at: left, size: from.width, room: to.width, feather })
    const rows = weightsOf({ at: top, size: from.height, room: to.height, feather })
    const mask = feather === 0 ? null : featherMask(columns, rows, context)
    const result = context.allocate(below.shape)
    copyInto(result.data, 0, below.data, context.checkpoint)
    for (let plane = 0; plane < elementCount(leading); plane++) {
      const target = { data: result.data, start: plane * to.width * to.height, ...to }
      const source = { data: above.data, start: plane * from.width * from.height, ...from }
      pastePicture({ target, source, mask, channels: 1, x: left, y: top }, context)
    }
    return { outputs: [withSamples(given, result)] }
  },
})

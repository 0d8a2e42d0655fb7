/** All pictures of a batch resized by one of five methods, as work on rows. */
import type { RowLoop, RowWork } from '../rows/row-loop.ts'
import { isHalf, openArea, openBilinear, openHalf } from './resize-area.ts'
import { openSeparable, type Planes, type Resize, type ResizedRows } from './resize-float.ts'
import { openLanczos } from './resize-lanczos.ts'

export const UPSCALE_METHODS = ['nearest-exact', 'bilinear', 'area', 'bicubic', 'lanczos'] as const
export type UpscaleMethod = (typeof UPSCALE_METHODS)[number]

export interface ResizeJob extends Resize, RowWork {
  readonly name: 'resize'
  readonly method: UpscaleMethod
  /** Row after row, picture after picture. */
  readonly target: { readonly data: Float32Array; readonly width: number; readonly height: number }
}

const OPENERS: Readonly<Record<UpscaleMethod, (resize: Resize) => ResizedRows>> = {
  'nearest-exact': (resize) => openSeparable('nearest-exact', resize),
  bilinear: (resize) => (isHalf(resize) ? openHalf('halveBilinear', resize) : openBilinear(resize)),
  area: (resize) => (isHalf(resize) ? openHalf('halveArea', resize) : openArea(resize)),
  bicubic: (resize) => openSeparable('bicubic', resize),
  lanczos: openLanczos,
}

// The first rows of a band need source rows that the band before has resized as well: about this many times as many rows
// of the target keep that below a tenth.
const LEAST_ROWS: Readonly<Record<UpscaleMethod, number>> = {
  'nearest-exact': 4,
  bilinear: 16,
  area: 4,
  bicubic: 32,
  lanczos: 48,
}

export function toResizeJob(method: UpscaleMethod, source: Planes, target: ResizeJob['target']): ResizeJob {
  const rows = target.data.length / (target.width * source.channels)
  const values = (rows / target.height) * source.width * source.height * source.channels + target.data.length
  return { name: 'resize', method, source, target, rows, leastRows: LEAST_ROWS[method], values }
}

export function openResizeRows({ method, source, target }: ResizeJob): RowLoop {
  const { space, rowAt } = OPENERS[method]({ source, target })
  const length = target.width * source.channels
  return {
    writeRow(row) {
      const start = source.start + Math.floor(row / target.height) * source.planeStride
      space.store(rowAt(row % target.height, start), target.data.subarray(row * length, (row + 1) * length))
    },
    [Symbol.dispose]: () => space[Symbol.dispose](),
  }
}

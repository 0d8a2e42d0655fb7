import { defineNode } from '../../node/define-node.ts'
import { combo, image, int } from '../../node/input-kinds.ts'
import { sliceBatch } from '../../tensor/batch-axis.ts'
import { type Size, scaledBy } from '../../tensor/resize/target-size.ts'
import { upscale } from '../../tensor/resize/upscale.ts'
import type { PixelWork, Tensor } from '../../tensor/tensor.ts'
import { cutWindow, paste, type Window } from '../../tensor/window.ts'
import { boxesInput, type Detection, readBoxes } from './boxes.ts'

/** Around where a head would be: in the middle across, near the top. null for images too small for that. */
function fallback({ width, height }: Size): Window | null {
  const side = Math.trunc(Math.min(width, height) * 0.3)
  const x = Math.max(0, Math.floor((width - side) / 2))
  const y = Math.max(0, Math.trunc(height * 0.1))
  const window = { x, y, width: Math.min(width - x, side), height: Math.min(height - y, side) }
  return window.width > 0 && window.height > 0 ? window : null
}

/** What holds all boxes of a frame, with some room, inside the picture. */
function unionOf(boxes: readonly Detection[], size: Size, padding: number): Window | null {
  const left = Math.max(0, Math.min(...boxes.map(({ x }) => Math.trunc(x))) - padding)
  const top = Math.max(0, Math.min(...boxes.map(({ y }) => Math.trunc(y))) - padding)
  const right = Math.min(size.width, Math.max(...boxes.map(({ x, width }) => Math.trunc(x + width))) + padding)
  const bottom = Math.min(size.height, Math.max(...boxes.map(({ y, height }) => Math.trunc(y + height))) + padding)
  if (right <= left || bottom <= top) return fallback(size)
  return { x: left, y: top, width: right - left, height: bottom - top }
}

/** The largest size of the same aspect that fits. */
function fitInto(crop: Size, { width, height }: Size): Size {
  return scaledBy(crop, Math.min(width / crop.width, height / crop.height))
}

interface Target extends Size {
  readonly isPadded: boolean
}

function cropFrame(frame: Tensor, window: Window, { target, work }: { target: Target; work: PixelWork }): Tensor {
  const cropped = cutWindow(frame, window, work)
  const size = target.isPadded ? fitInto(window, target) : { width: target.width, height: target.height }
  return upscale(cropped, { ...size, method: 'area', crop: 'disabled' }, work)
}

/** Crops centred on black, stacked to one batch. null stands for a black frame. */
function stack(
  crops: readonly (Tensor | null)[],
  { width, height, channels }: Size & { readonly channels: number },
  work: PixelWork,
): Tensor {
  const result = work.allocate([crops.length, height, width, channels])
  result.data.fill(0)
  crops.forEach((crop, index) => {
    if (crop === null) return
    const x = Math.floor((width - crop.shape[2]) / 2)
    const y = Math.floor((height - crop.shape[1]) / 2)
    paste(sliceBatch(result, index, 1), crop, { x, y, frameOf: () => 0, checkpoint: work.checkpoint })
  })
  return result
}

export const cropByBBoxes = defineNode({
  classType: 'CropByBBoxes',
  displayName: 'Crop By Bounding Boxes',
  category: 'image/transform',
  description: 'Cuts out of every frame what its boxes cover together, and resizes it.',
  style: 'schema',
  required: {
    image: image({}),
    bboxes: boxesInput(),
    output_width: int({ default: 512, min: 64, max: 4096, step: 8 }),
    output_height: int({ default: 512, min: 64, max: 4096, step: 8 }),
    padding: int({ default: 0, min: 0, max: 1024, step: 1 }),
    keep_aspect: combo(['stretch', 'pad'], { default: 'stretch' }),
  },
  outputs: [{ type: 'IMAGE' }],
  cost: 'compute',
  run({ image: tensor, bboxes, output_width: width, output_height: height, padding, keep_aspect: aspect }, context) {
    const [batch, oldHeight, oldWidth, channels] = tensor.shape
    const boxes = readBoxes(bboxes)
    const target = { width, height, isPadded: aspect === 'pad' }
    const crops: (Tensor | null)[] = []
    for (let index = 0; index < batch; index++) {
      // Frames beyond the last list have its boxes.
      const ofFrame = boxes[Math.min(index, boxes.length - 1)] ?? []
      if (ofFrame.length === 0) continue
      const window = unionOf(ofFrame, { width: oldWidth, height: oldHeight }, padding)
      crops.push(window && cropFrame(sliceBatch(tensor, index, 1), window, { target, work: context }))
    }
    return { outputs: [crops.length === 0 ? tensor : stack(crops, { width, height, channels }, context)] }
  },
})

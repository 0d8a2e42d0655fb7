/** Boxes as detectors hand them on: one, a list for every frame alike, or a list per frame; coordinates may be fractional. */
import { NumberText } from '../../../lib/json/lossless-json.ts'
import { drawText } from '../../lettering/draw-text.ts'
import { ASCENT, charactersOf, createLetters, type Letters, widthOf } from '../../lettering/glyphs.ts'
import { defineNode } from '../../node/define-node.ts'
import { combo, image, int, ofType } from '../../node/input-kinds.ts'
import type { NodeContext } from '../../node/node-context.ts'
import { NodeError } from '../../node/node-error.ts'
import { sliceBatch } from '../../tensor/batch-axis.ts'
import { BYTE_TO_FLOAT } from '../../tensor/bytes.ts'
import { cutWindow, paste, throughBytes, type Window } from '../../tensor/channels.ts'
import { type Size, scaledBy, upscale } from '../../tensor/resize/upscale.ts'
import { type ImageView, type PixelWork, type Tensor, viewOf } from '../../tensor/tensor.ts'
import { isValueObject, type Value, type ValueObject, valueTypeName } from '../../values/value.ts'

interface Detection {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
  readonly label: string | null
  readonly score: number
}

/** The declaration of an input that only takes links. */
const boxesInput = () =>
  ofType('BOUNDING_BOX', { default: { x: 0, y: 0, width: 512, height: 512 }, socketless: true, forceInput: true })

function readNumber(box: ValueObject, key: string, absent?: number): number {
  if (!Object.hasOwn(box, key)) {
    if (absent !== undefined) return absent
    throw new NodeError('KeyError', `'${key}'`)
  }
  const value = box[key]
  const number = value instanceof NumberText ? Number(value.text) : value
  if (typeof number === 'number' && Number.isFinite(number)) return number
  throw new NodeError('TypeError', `bboxes: ${key} must be a number, got '${valueTypeName(value)}'`)
}

function readDetection(value: Value): Detection {
  if (!isValueObject(value)) {
    throw new NodeError(
      'TypeError',
      `bboxes: expected boxes with x, y, width and height, got '${valueTypeName(value)}'`,
    )
  }
  const [x, y, width, height] = ['x', 'y', 'width', 'height'].map((key) => readNumber(value, key))
  const label = typeof value['label'] === 'string' ? value['label'] : null
  return { x, y, width, height, label, score: readNumber(value, 'score', 1) }
}

/** The boxes of every frame; a single list stands for all frames. Empty when there are none at all. */
function readBoxes(value: Value): readonly (readonly Detection[])[] {
  if (isValueObject(value)) return [[readDetection(value)]]
  if (!Array.isArray(value) || value.length === 0) return []
  if (!Array.isArray(value[0])) return [value.map(readDetection)]
  return value.map((frame) => (Array.isArray(frame) ? frame.map(readDetection) : [readDetection(frame)]))
}

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

// Boxes drawn into pictures, with the names of the things inside. Works on 8-bit pixels.

const COLORS = [
  [255, 0, 0],
  [0, 200, 0],
  [0, 0, 255],
  [255, 165, 0],
  [128, 0, 128],
  [0, 255, 255],
  [255, 20, 147],
  [100, 149, 237],
] as const
type Ink = (typeof COLORS)[number]

const LINE_WIDTH = 3
const LABEL_SIZE = 10
const LABEL_OFFSET = 2
const EMPTY_SIDE = 640

/** Both corners belong to it; what lies outside the picture is left out. */
function fillRows({ width, height, channels, data }: ImageView, area: Corners, ink: Ink): void {
  const left = Math.max(0, area.left)
  const right = Math.min(width - 1, area.right)
  const bottom = Math.min(height - 1, area.bottom)
  for (let y = Math.max(0, area.top); y <= bottom; y++) {
    for (let x = left; x <= right; x++) {
      for (let c = 0; c < channels; c++) data[(y * width + x) * channels + c] = c < 3 ? BYTE_TO_FLOAT[ink[c]] : 1
    }
  }
}

interface Corners {
  readonly left: number
  readonly top: number
  readonly right: number
  readonly bottom: number
}

/** An outline that grows inwards. */
function drawOutline(view: ImageView, { left, top, right, bottom }: Corners, ink: Ink): void {
  const inset = LINE_WIDTH - 1
  fillRows(view, { left, right, top, bottom: top + inset }, ink)
  fillRows(view, { left, right, top: bottom - inset, bottom }, ink)
  // In a box lower than two lines the sides reach from the one end to the other all the same.
  const [from, to] = [top + LINE_WIDTH, bottom - inset]
  const sides = { top: Math.min(from, to), bottom: Math.max(from, to) }
  fillRows(view, { ...sides, left, right: left + inset }, ink)
  fillRows(view, { ...sides, left: right - inset, right }, ink)
}

interface Label {
  readonly text: string
  readonly x: number
  readonly y: number
  readonly ink: Ink
}

/** Mixes an ink into one pixel, in whole levels. */
function mix({ channels, data }: ImageView, pixel: number, { ink, share }: { ink: Ink; share: number }): void {
  for (let c = 0; c < channels; c++) {
    const at = pixel * channels + c
    data[at] = BYTE_TO_FLOAT[Math.round(255 * data[at] * (1 - share) + (c < 3 ? ink[c] : 255) * share)]
  }
}

function drawLabel(view: ImageView, { text, x, y, ink }: Label, letters: Letters): void {
  const characters = charactersOf(text)
  // Only the part that the text can reach is drawn: a picture may hold many labels.
  const left = Math.floor(x)
  const top = Math.floor(y)
  const width = Math.ceil(widthOf(characters, letters) * LABEL_SIZE) + 2
  const height = 2 * LABEL_SIZE
  const coverage = { width, height, data: new Float32Array(width * height) }
  const line = { characters, x: x - left, baseline: y - top + ASCENT * LABEL_SIZE }
  drawText(coverage, [line], { letters, size: LABEL_SIZE, outline: 0 }, () => {})
  coverage.data.forEach((share, index) => {
    const [column, row] = [left + (index % width), top + Math.floor(index / width)]
    const isInside = column >= 0 && row >= 0 && column < view.width && row < view.height
    if (share > 0 && isInside) mix(view, row * view.width + column, { ink, share })
  })
}

/** The surest on top. */
function drawDetections(frame: Tensor, detections: readonly Detection[], { checkpoint }: NodeContext): void {
  const letters = createLetters()
  const view = viewOf(frame)
  for (const { x, y, width, height, label, score } of detections.toSorted((a, b) => a.score - b.score)) {
    checkpoint()
    if (width < 0 || height < 0) {
      const axis = width < 0 ? 'x' : 'y'
      throw new NodeError('ValueError', `${axis}1 must be greater than or equal to ${axis}0`)
    }
    const known = label === null ? -1 : DETECTION_CLASSES.indexOf(label)
    const ink = COLORS[Math.max(0, known) % COLORS.length]
    const [left, top] = [Math.trunc(x), Math.trunc(y)]
    drawOutline(view, { left, top, right: Math.trunc(x + width), bottom: Math.trunc(y + height) }, ink)
    if (known < 0) continue
    // Upstream keeps scores in single precision.
    const text = `${label} ${Math.fround(score).toFixed(2)}`
    drawLabel(view, { text, x: x + LABEL_OFFSET, y: y + LABEL_OFFSET, ink }, letters)
  }
}

/** Black, as large as the boxes reach. */
function canvasFor(boxes: readonly (readonly Detection[])[], { allocate }: NodeContext): Tensor {
  const all = boxes.flat()
  const extent = (end: (box: Detection) => number) =>
    all.length === 0 ? EMPTY_SIDE : Math.max(...all.map((box) => Math.trunc(end(box))))
  const width = extent((box) => box.x + box.width)
  const height = extent((box) => box.y + box.height)
  const canvas = allocate([boxes.length, Math.max(0, height), Math.max(0, width), 3])
  canvas.data.fill(0)
  return canvas
}

export const drawBBoxes = defineNode({
  classType: 'DrawBBoxes',
  displayName: 'Draw BBoxes',
  category: 'image/detection',
  description: 'Draws boxes and the names of what they hold into images, or onto black when there is none.',
  style: 'schema',
  required: { bboxes: boxesInput() },
  optional: { image: image({}) },
  outputs: [{ type: 'IMAGE', name: 'out_image' }],
  cost: 'compute',
  run({ bboxes, image: tensor }, context) {
    const read = readBoxes(bboxes)
    const perFrame = read.length === 0 ? [[]] : read
    const result = throughBytes(tensor ?? canvasFor(perFrame, context), context)
    const isPerFrame = Array.isArray(bboxes) && Array.isArray(bboxes[0])
    for (let index = 0; index < result.shape[0]; index++) {
      const detections = isPerFrame ? perFrame[index] : perFrame[0]
      if (detections === undefined) throw new NodeError('IndexError', 'list index out of range')
      drawDetections(sliceBatch(result, index, 1), detections, context)
    }
    return { outputs: [result] }
  },
})

// The eighty kinds of things that common detectors know, in their order: a box's colour follows from it.
const CLASS_NAMES = `person,bicycle,car,motorcycle,airplane,bus,train,truck,boat,traffic light,fire hydrant,stop sign,parking meter,
bench,bird,cat,dog,horse,sheep,cow,elephant,bear,zebra,giraffe,backpack,umbrella,handbag,tie,suitcase,frisbee,skis,snowboard,
sports ball,kite,baseball bat,baseball glove,skateboard,surfboard,tennis racket,bottle,wine glass,cup,fork,knife,spoon,bowl,
banana,apple,sandwich,orange,broccoli,carrot,hot dog,pizza,donut,cake,chair,couch,potted plant,bed,dining table,toilet,tv,
laptop,mouse,remote,keyboard,cell phone,microwave,oven,toaster,sink,refrigerator,book,clock,vase,scissors,teddy bear,
hair drier,toothbrush`

const DETECTION_CLASSES: readonly string[] = CLASS_NAMES.replaceAll('\n', '').split(',')

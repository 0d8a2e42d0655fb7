/** Two images side by side or one above the other, with a bar between them. */
import { defineNode } from '../../node/define-node.ts'
import { boolean, combo, image, int } from '../../node/input-kinds.ts'
import { setChannelCount } from '../../tensor/channels.ts'
import type { Size } from '../../tensor/resize/target-size.ts'
import { upscale } from '../../tensor/resize/upscale.ts'
import { type PixelWork, type Tensor, viewOf } from '../../tensor/tensor.ts'
import { paste } from '../../tensor/window.ts'

const DIRECTIONS = ['right', 'down', 'left', 'up'] as const
const COLORS = ['white', 'black', 'red', 'green', 'blue'] as const
type Color = (typeof COLORS)[number]

const RGB: Readonly<Record<Color, readonly [number, number, number]>> = {
  white: [1, 1, 1],
  black: [0, 0, 0],
  red: [1, 0, 0],
  green: [0, 1, 0],
  blue: [0, 0, 1],
}

/** The second image with the first one's height, or its width; its aspect kept. */
function matchSize(first: Size, second: Tensor, { isAcross, work }: { isAcross: boolean; work: PixelWork }): Tensor {
  const { width, height } = viewOf(second)
  const aspect = width / height
  const size = isAcross
    ? { width: Math.trunc(first.height * aspect), height: first.height }
    : { width: first.width, height: Math.trunc(first.width / aspect) }
  return upscale(second, { ...size, method: 'lanczos', crop: 'disabled' }, work)
}

/** A bar's colour in as many channels as the images have: alpha is 1, channels beyond the colour stay 0. */
function inkOf(color: Color, channels: number): number[] {
  return Array.from({ length: channels }, (_, c) => RGB[color][c] ?? (channels === 4 && c === 3 ? 1 : 0))
}

/** What stays free beside a smaller image takes the bar's colour only if that is white; added channels are 1. */
function padInk(color: Color, given: number, channels: number): number[] {
  return Array.from({ length: channels }, (_, c) => (c >= given || color === 'white' ? 1 : 0))
}

interface Rectangle extends Size {
  readonly x: number
  readonly y: number
}

interface Fill extends Pick<PixelWork, 'checkpoint'> {
  readonly ink: readonly number[]
}

function fillRectangle(canvas: Tensor, { x, y, width, height }: Rectangle, { ink, checkpoint }: Fill): void {
  const view = viewOf(canvas)
  const line = Float32Array.from({ length: width * view.channels }, (_, i) => ink[i % view.channels])
  for (let index = 0; index < view.batch; index++) {
    for (let row = y; row < y + height; row++) {
      checkpoint()
      canvas.data.set(line, ((index * view.height + row) * view.width + x) * view.channels)
    }
  }
}

interface Layout {
  readonly isAcross: boolean
  /** How many channels each image had before they were made alike. */
  readonly given: readonly number[]
  /** Thickness of the bar. */
  readonly bar: number
  readonly color: Color
}

/** Images in their order on one canvas; the smaller one sits in the middle of its strip. */
function layOut(images: readonly [Tensor, Tensor], { isAcross, given, bar, color }: Layout, work: PixelWork): Tensor {
  const views = images.map(viewOf)
  const channels = views[0].channels
  const batch = Math.max(views[0].batch, views[1].batch)
  const breadth = Math.max(...views.map((view) => (isAcross ? view.height : view.width)))
  const lengths = views.map((view) => (isAcross ? view.width : view.height))
  const total = lengths[0] + bar + lengths[1]
  const canvas = work.allocate(isAcross ? [batch, breadth, total, channels] : [batch, total, breadth, channels])
  const stripOf = (along: number, length: number) =>
    isAcross ? { x: along, y: 0, width: length, height: breadth } : { x: 0, y: along, width: breadth, height: length }
  images.forEach((source, index) => {
    const along = index === 0 ? 0 : lengths[0] + bar
    const beside = Math.floor((breadth - (isAcross ? views[index].height : views[index].width)) / 2)
    const frameOf = (frame: number) => Math.min(frame, views[index].batch - 1)
    fillRectangle(canvas, stripOf(along, lengths[index]), {
      ink: padInk(color, given[index], channels),
      checkpoint: work.checkpoint,
    })
    const at = isAcross ? { x: along, y: beside } : { x: beside, y: along }
    paste(canvas, source, { ...at, frameOf, checkpoint: work.checkpoint })
  })
  fillRectangle(canvas, stripOf(lengths[0], bar), { ink: inkOf(color, channels), checkpoint: work.checkpoint })
  return canvas
}

export const imageStitch = defineNode({
  classType: 'ImageStitch',
  displayName: 'Stitch Images',
  category: 'image/transform',
  description: 'Puts a second image beside, above or below the first, with an optional bar between them.',
  style: 'schema',
  required: {
    image1: image({}),
    direction: combo(DIRECTIONS, { default: 'right' }),
    match_image_size: boolean({ default: true }),
    spacing_width: int({ advanced: true, default: 0, min: 0, max: 1024, step: 2 }),
    spacing_color: combo(COLORS, { advanced: true, default: 'white' }),
  },
  optional: { image2: image({}) },
  outputs: [{ type: 'IMAGE' }],
  cost: 'compute',
  run(
    { image1, image2, direction, match_image_size: isMatched, spacing_width: spacing, spacing_color: color },
    context,
  ) {
    if (image2 === undefined) return { outputs: [image1] }
    const isAcross = direction === 'right' || direction === 'left'
    const matched = isMatched ? matchSize(viewOf(image1), image2, { isAcross, work: context }) : image2
    const channels = Math.max(image1.shape[3], matched.shape[3])
    const first = setChannelCount(image1, channels, context)
    const second = setChannelCount(matched, channels, context)
    const isInOrder = direction === 'right' || direction === 'down'
    const images = isInOrder ? ([first, second] as const) : ([second, first] as const)
    const channelCounts = [image1.shape[3], matched.shape[3]]
    const given = isInOrder ? channelCounts : channelCounts.reverse()
    // An odd bar becomes one wider: models want even sides.
    return { outputs: [layOut(images, { isAcross, given, bar: spacing + (spacing % 2), color }, context)] }
  },
})

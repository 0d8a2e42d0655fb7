/** Two images side by side or one above the other, with a bar between them. */
import { roundHalfEven } from '../../../lib/python/values.ts'
import { defineListNode, defineNode, values } from '../../node/define-node.ts'
import { boolean, combo, image, int, MAX_RESOLUTION } from '../../node/input-kinds.ts'
import { NodeError, refuseLongList } from '../../node/node-error.ts'
import { sliceBatch } from '../../tensor/batch-axis.ts'
import { cutWindow, paste, setChannelCount, type Window } from '../../tensor/channels.ts'
import { type Size, upscale } from '../../tensor/resize/upscale.ts'
import { type PixelWork, type Tensor, viewOf } from '../../tensor/tensor.ts'

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

// An image as a list of overlapping tiles, and back: overlaps are blended with weights that fall off towards the edges.

interface TileSize {
  readonly width: number
  readonly height: number
  readonly overlap: number
}

/** Starts along one axis, with the length of a tile there. */
function startsAlong(length: number, tile: number, overlap: number): { starts: number[]; length: number } {
  // However large the overlap, a tile brings at least a quarter of itself.
  const stride = roundHalfEven(Math.max(tile * 0.25, tile - overlap))
  if (stride === 0) throw new NodeError('ValueError', `tiles of ${tile} pixels cannot overlap by ${overlap}`)
  const starts: number[] = []
  for (let at = 0; at < length; at += stride) {
    const end = Math.min(at + tile, length)
    starts.push(Math.max(0, end - tile))
    if (end >= length) break
  }
  return { starts, length: Math.min(tile, length) }
}

interface TileGrid {
  readonly count: number
  /** Row by row, the last of each row and column moved back inside. */
  windows(): Generator<Window>
}

/** Where the tiles of an image lie. */
function tileGrid(size: { readonly width: number; readonly height: number }, tile: TileSize): TileGrid {
  const across = startsAlong(size.width, tile.width, tile.overlap)
  const down = startsAlong(size.height, tile.height, tile.overlap)
  return {
    count: across.starts.length * down.starts.length,
    *windows() {
      for (const y of down.starts) {
        for (const x of across.starts) yield { x, y, width: across.length, height: down.length }
      }
    },
  }
}

/** All tiles lie in one piece of memory: asked for once, before the first is cut. */
function cutTiles(tensor: Tensor, tile: TileSize, context: PixelWork): Tensor[] {
  const grid = tileGrid(viewOf(tensor), tile)
  refuseLongList(grid.count)
  const [batch, height, width, channels] = tensor.shape
  const shape = [grid.count * batch, Math.min(tile.height, height), Math.min(tile.width, width), channels]
  const whole = context.allocate(shape)
  return Array.from(grid.windows(), (window, index) => {
    return cutWindow(tensor, window, { ...context, allocate: () => sliceBatch(whole, index * batch, batch) })
  })
}

const tileSide = () => int({ default: 1024, min: 64, max: MAX_RESOLUTION })
const finalSide = () => int({ default: 1024, min: 64, max: 32_768 })
const overlapWidth = () => int({ default: 128, min: 0, max: 4096 })

export const splitImageToTileList = defineNode({
  classType: 'SplitImageToTileList',
  displayName: 'Split Image into List of Tiles',
  category: 'image/batch',
  description: 'Cuts images into overlapping tiles, row by row.',
  style: 'schema',
  required: { image: image({}), tile_width: tileSide(), tile_height: tileSide(), overlap: overlapWidth() },
  outputs: [{ type: 'IMAGE', isList: true }],
  cost: 'compute',
  run({ image: tensor, tile_width: width, tile_height: height, overlap }, context) {
    return values(cutTiles(tensor, { width, height, overlap }, context))
  },
})

const LEAST_WEIGHT = 1e-5

/** Half a sine over the length of a tile, so that edges count least; 1 everywhere when tiles do not overlap. */
function edgeWeights(length: number, isBlended: boolean): Float32Array {
  const weights = new Float32Array(length).fill(1)
  if (!isBlended) return weights
  return weights.map((_, i) => Math.max(LEAST_WEIGHT, Math.sin((Math.PI * i) / Math.max(1, length - 1))))
}

interface Blend {
  readonly across: Float32Array
  readonly down: Float32Array
  /** One sum of weights per pixel of the canvas. */
  readonly sums: Float32Array
}

function addTile(
  canvas: Tensor,
  tile: Tensor,
  at: Window,
  { across, down, sums, checkpoint }: Blend & PixelWork,
): void {
  const to = viewOf(canvas)
  const from = viewOf(tile)
  const height = Math.min(at.height, from.height)
  const width = Math.min(at.width, from.width)
  for (let index = 0; index < to.batch; index++) {
    // A single tile serves every image of the batch.
    const frame = from.batch === 1 ? 0 : index
    for (let y = 0; y < height; y++) {
      checkpoint()
      const pixel = (at.y + y) * to.width + at.x
      let out = (index * to.height * to.width + pixel) * to.channels
      let source = (frame * from.height + y) * from.width * from.channels
      for (let x = 0; x < width; x++) {
        const weight = Math.fround(down[y] * across[x])
        if (index === 0) sums[pixel + x] += weight
        for (let c = 0; c < to.channels; c++) canvas.data[out++] += from.data[source++] * weight
      }
    }
  }
}

function divide(canvas: Tensor, sums: Float32Array, checkpoint: () => void): void {
  const { batch, height, width, channels, data } = viewOf(canvas)
  for (let row = 0, at = 0; row < batch * height; row++) {
    checkpoint()
    const first = (row % height) * width
    for (let x = 0; x < width; x++) {
      const sum = sums[first + x]
      for (let c = 0; c < channels; c++, at++) data[at] = sum === 0 ? data[at] : data[at] / sum
    }
  }
}

/** Tiles in the order in which an image of this size would have been cut; what no tile covers stays black. */
function merge(tiles: readonly Tensor[], size: Size & { readonly overlap: number }, context: PixelWork): Tensor {
  const [batch, tileHeight, tileWidth, channels] = tiles[0].shape
  const unlike = tiles.find((tile) => tile.shape[3] !== channels || (tile.shape[0] !== batch && tile.shape[0] !== 1))
  if (unlike !== undefined) {
    const shapes = `[${unlike.shape.join(', ')}] and [${tiles[0].shape.join(', ')}]`
    throw new NodeError('RuntimeError', `tiles of unlike batch or channels cannot be merged: ${shapes}`)
  }
  const { width, height, overlap } = size
  const canvas = context.allocate([batch, height, width, channels])
  canvas.data.fill(0)
  const sums = context.allocate([height, width]).data
  sums.fill(0)
  const blend = { across: edgeWeights(tileWidth, overlap > 0), down: edgeWeights(tileHeight, overlap > 0), sums }
  const windows = tileGrid(size, { width: tileWidth, height: tileHeight, overlap }).windows()
  const work = { ...blend, allocate: context.allocate, checkpoint: context.checkpoint }
  for (const [index, at] of windows.take(tiles.length).toArray().entries()) addTile(canvas, tiles[index], at, work)
  divide(canvas, sums, context.checkpoint)
  return canvas
}

export const imageMergeTileList = defineListNode({
  classType: 'ImageMergeTileList',
  displayName: 'Merge List of Tiles to Image',
  category: 'image/batch',
  description: 'Puts tiles together again and blends them where they overlap.',
  style: 'schema',
  required: { image_list: image({}), final_width: finalSide(), final_height: finalSide(), overlap: overlapWidth() },
  outputs: [{ type: 'IMAGE' }],
  cost: 'compute',
  run({ image_list: tiles, final_width: [width], final_height: [height], overlap: [overlap] }, context) {
    if (tiles.length === 0) throw new NodeError('IndexError', 'list index out of range')
    return values(merge(tiles, { width, height, overlap }, context))
  },
})

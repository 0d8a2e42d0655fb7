/** Text over pictures, drawn with the engine's own letters (see lettering/glyphs.ts): no fonts of the machine take part. */
import { pythonReprText } from '../../../lib/python/text.ts'
import { drawText, layOutText } from '../../lettering/draw-text.ts'
import { createLetters } from '../../lettering/glyphs.ts'
import { defineNode } from '../../node/define-node.ts'
import { boolean, color, combo, float, image, string } from '../../node/input-kinds.ts'
import type { NodeContext } from '../../node/node-context.ts'
import { NodeError } from '../../node/node-error.ts'
import { sizeMismatch } from '../../tensor/batch-axis.ts'
import { type Tensor, viewOf } from '../../tensor/tensor.ts'

/** The layer that goes over every frame: colours and how opaque they are. */
interface Overlay {
  readonly ink: readonly [number, number, number, number]
  readonly text: Float32Array
  readonly outline: Float32Array | null
}

/**
 * Lays one row of the layer over one of a picture. The layer is what Pillow would have drawn on a transparent one: ink is
 * mixed into colour and opacity alike, so that edges without an outline come out a little darker.
 */
function composite(picture: Float32Array, out: Float32Array, { ink, text, outline }: Overlay): void {
  const channels = picture.length / text.length
  for (let pixel = 0, at = 0, to = 0; pixel < text.length; pixel++, at += channels, to += 3) {
    const letter = text[pixel]
    const around = outline === null ? 0 : outline[pixel]
    const alpha = around * (1 - letter) + ink[3] * letter
    for (let c = 0; c < 3; c++) {
      const below = picture[channels === 1 ? at : at + c]
      out[to + c] = alpha === 0 ? below : below * (1 - alpha) + ink[c] * letter * alpha
    }
  }
}

function checkChannels(images: Tensor): void {
  const channels = images.shape[3]
  if (channels === 3 || channels === 1) return
  throw sizeMismatch(channels, 3, 3)
}

function overlayFrames(images: Tensor, overlay: Overlay, { allocate, checkpoint }: NodeContext): Tensor {
  const { batch, height, width, channels, data } = viewOf(images)
  const result = allocate([batch, height, width, 3])
  for (let row = 0; row < batch * height; row++) {
    checkpoint()
    const first = (row % height) * width
    const partOf = (coverage: Float32Array) => coverage.subarray(first, first + width)
    const from = data.subarray(row * width * channels, (row + 1) * width * channels)
    const to = result.data.subarray(row * width * 3, (row + 1) * width * 3)
    const outline = overlay.outline && partOf(overlay.outline)
    composite(from, to, { ink: overlay.ink, text: partOf(overlay.text), outline })
  }
  return result
}

export const textOverlay = defineNode({
  classType: 'TextOverlay',
  displayName: 'Draw Text Overlay',
  category: 'text',
  description: 'Writes text over every image, wrapped and shrunk to fit, with an optional black outline.',
  style: 'schema',
  required: {
    images: image({}),
    text: string({ default: '', multiline: true }),
    font_size: float({ default: 5, min: 0.5, max: 50, step: 0.5 }),
    color: color({ default: '#ffffff', socketless: true }),
    position: combo(['top', 'bottom'], { default: 'top' }),
    align: combo(['left', 'center', 'right'], { default: 'left' }),
    outline: boolean({ default: true }),
  },
  outputs: [{ type: 'IMAGE', name: 'images' }],
  cost: 'compute',
  run({ images, text, font_size: fontPercent, color: ink, position, align, outline: hasOutline }, context) {
    if (text.trim() === '') return { outputs: [images] }
    checkChannels(images)
    const { width, height } = viewOf(images)
    const rgba = readColor(ink)
    const escaped = text.replaceAll('\\n', '\n').replaceAll('\\t', '\t')
    const plan = { width, height, fontPercent, position, align, hasOutline }
    const { lines, pen } = layOutText(escaped, createLetters(), plan)
    const draw = (outline: number) => {
      const data = new Float32Array(width * height)
      drawText({ width, height, data }, lines, { ...pen, outline }, context.checkpoint)
      return data
    }
    const overlay = { ink: rgba, text: draw(0), outline: hasOutline ? draw(pen.outline) : null }
    return { outputs: [overlayFrames(images, overlay, context)] }
  },
})

const HEX = /^#(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})$/i

const COLOR_NAMES: Readonly<Record<string, string>> = {
  black: '#000000',
  silver: '#c0c0c0',
  gray: '#808080',
  grey: '#808080',
  white: '#ffffff',
  maroon: '#800000',
  red: '#ff0000',
  purple: '#800080',
  magenta: '#ff00ff',
  green: '#008000',
  lime: '#00ff00',
  olive: '#808000',
  yellow: '#ffff00',
  orange: '#ffa500',
  navy: '#000080',
  blue: '#0000ff',
  teal: '#008080',
  cyan: '#00ffff',
}

/**
 * Red, green, blue and opacity within 0..1, of a colour as nodes are given it: `#rgb`, `#rgba`, `#rrggbb`, `#rrggbbaa`, or
 * one of the plainest names.
 */
function readColor(text: string): readonly [number, number, number, number] {
  const hex = Object.hasOwn(COLOR_NAMES, text.toLowerCase()) ? COLOR_NAMES[text.toLowerCase()] : text
  if (!HEX.test(hex)) {
    throw new NodeError('ValueError', `unknown color specifier: ${pythonReprText(text)}`)
  }
  const digits = hex.length <= 5 ? [...hex.slice(1)].map((digit) => digit + digit).join('') : hex.slice(1)
  const [red, green, blue, alpha] = `${digits}ff`.match(/../g) as RegExpMatchArray
  const share = (pair: string) => Number.parseInt(pair, 16) / 255
  return [share(red), share(green), share(blue), share(alpha)]
}

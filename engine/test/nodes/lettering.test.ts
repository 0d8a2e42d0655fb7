/** Text on pictures: wrapped, placed, drawn the same everywhere. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { wrapText } from '../../lettering/draw-text.ts'
import { charactersOf, createLetters, GLYPHS, widthOf } from '../../lettering/glyphs.ts'
import { NodeError } from '../../node/node-error.ts'
import { textOverlay } from '../../nodes/geometry/text-overlay.ts'
import type { Tensor } from '../../tensor/tensor.ts'
import { tensor, tensorFrom } from '../support/call-node.ts'

const letters = createLetters()
const wrapped = (text: string, maxWidth: number) => wrapText(text, { letters, maxWidth }).map((line) => line.join(''))
const grey = (shape: readonly number[]) => tensor(shape, () => 0.5)

interface Options {
  readonly text?: string
  readonly font_size?: number
  readonly color?: string
  readonly position?: string
  readonly align?: string
  readonly outline?: boolean
}

function draw(images: Tensor, options: Options = {}): Promise<Tensor> {
  const defaults = { text: 'Hi', font_size: 20, color: '#ffffff', position: 'top', align: 'left', outline: false }
  return tensorFrom(textOverlay, { images, ...defaults, ...options })
}

/** The smallest box around everything that changed. */
function changed({ shape, data }: Tensor) {
  const [, height, width, channels] = shape
  const box = { left: width, right: -1, top: height, bottom: -1, pixels: 0 }
  for (let pixel = 0; pixel < width * height; pixel++) {
    if (data[pixel * channels] === 0.5) continue
    const [x, y] = [pixel % width, Math.floor(pixel / width)]
    box.left = Math.min(box.left, x)
    box.right = Math.max(box.right, x)
    box.top = Math.min(box.top, y)
    box.bottom = Math.max(box.bottom, y)
    box.pixels++
  }
  return box
}

test('lines break at spaces, and inside a word only when it fits no line', () => {
  const five = widthOf(charactersOf('mmmmm'), letters) + 0.01
  assert.deepEqual(wrapped('mm mm mm', five), ['mm mm', 'mm'])
  assert.deepEqual(wrapped('mmmmmmmmmmmm', five), ['mmmmm', 'mmmmm', 'mm'])
  assert.deepEqual(wrapped('mm mmmmmmm mm', five), ['mm', 'mmmmm', 'mm mm'])
  assert.deepEqual(wrapped('a\n\nb  c\t d', 99), ['a', '', 'b c d'])
  assert.deepEqual(wrapped('mm', 0.001), ['m', 'm'])
})

test('every glyph has its strokes, accents sit on their letters, and the unknown is a box', () => {
  for (const [character, [advance]] of Object.entries(GLYPHS)) {
    const shape = letters(character)
    assert.equal(shape.advance, advance / 100)
    assert.ok(character === ' ' || shape.strokes.length > 0, character)
    assert.ok(
      shape.strokes.every((stroke) => stroke.length >= 4 && stroke.every(Number.isFinite)),
      character,
    )
  }
  assert.equal(letters('é').strokes.length, letters('e').strokes.length + 1)
  assert.equal(letters('ï').strokes.length, letters('ı').strokes.length + 2)
  assert.equal(letters('漢').strokes.length, 1)
  assert.deepEqual(charactersOf('e\u0301'), ['é'])
})

test('text touches the margin at the side it is put to', async () => {
  const images = grey([1, 100, 200, 3])
  const topLeft = changed(await draw(images))
  assert.ok(topLeft.top <= 2 && topLeft.left < 6 && topLeft.bottom < 25)
  const bottomRight = changed(await draw(images, { position: 'bottom', align: 'right' }))
  assert.ok(bottomRight.bottom >= 97 && bottomRight.right > 193)
  const middle = changed(await draw(images, { align: 'center' }))
  assert.ok(Math.abs((middle.left + middle.right) / 2 - 99.5) <= 1)
})

test('capitals are as high as a font of that size has them', async () => {
  const { top, bottom } = changed(await draw(grey([1, 200, 400, 3]), { text: 'H', font_size: 50 }))
  assert.ok(Math.abs(bottom - top + 1 - 70) <= 2)
})

test('too much text shrinks until it fits, but stays readable', async () => {
  const images = grey([1, 200, 200, 3])
  const text = 'word '.repeat(60)
  const { bottom, right } = changed(await draw(images, { text, font_size: 50 }))
  assert.ok(bottom < 200 && right < 200)
  const { pixels } = changed(await draw(images, { text: 'word '.repeat(5000), font_size: 50 }))
  assert.ok(pixels > 2000)
})

test('an outline is black around the letters and makes them larger', async () => {
  const images = grey([1, 100, 200, 3])
  const bare = await draw(images, { font_size: 50 })
  const outlined = await draw(images, { font_size: 50, outline: true })
  assert.ok(changed(outlined).pixels > changed(bare).pixels)
  assert.ok(bare.data.every((value) => value > 0.3))
  assert.ok(outlined.data.some((value) => value < 0.01) && outlined.data.some((value) => value > 0.99))
})

test('escapes are read, blank text changes nothing, and the colour is the one given', async () => {
  const images = grey([2, 100, 200, 3])
  assert.equal(await draw(images, { text: ' \n\t ' }), images)
  const two = changed(await draw(images, { text: 'A\\nA' }))
  const one = changed(await draw(images, { text: 'A' }))
  assert.equal(two.bottom - one.bottom, 24)
  const red = await draw(images, { text: 'I', font_size: 50, color: '#f00' })
  assert.ok(red.data.some((value, index) => index % 3 === 0 && value > 0.99))
  assert.ok(red.data.every((value, index) => index % 3 === 0 || value <= 0.5))
  assert.deepEqual(red.shape, [2, 100, 200, 3])
})

test('colours and pictures that cannot be used are refused', async () => {
  const images = grey([1, 10, 10, 3])
  const isValueError = (error: unknown) =>
    error instanceof NodeError && error.exceptionType === 'ValueError' && error.message.includes("'no colour'")
  await assert.rejects(draw(images, { color: 'no colour' }), isValueError)
  await assert.rejects(draw(grey([1, 10, 10, 4])), /size of tensor a \(4\)/)
  assert.deepEqual((await draw(grey([1, 10, 10, 1]))).shape, [1, 10, 10, 3])
})

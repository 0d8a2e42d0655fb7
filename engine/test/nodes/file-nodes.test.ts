/** Nodes that read and save pictures in other ways than plain PNG, in a real engine. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import sharp from 'sharp'
import { readChunks } from '../../../lib/files/png-chunks.ts'
import type { EngineEvent } from '../../graph/run-event.ts'
import { bytesOf, type GraphJson, lastOf, reportOf, type TestEngine } from '../support/harness.ts'
import { failureOf, files, onlyFile, openMediaEngine, seenTensor } from '../support/media-engine.ts'

let engine: TestEngine
before(async () => {
  engine = await openMediaEngine()
})
after(() => engine[Symbol.asyncDispose]())

const frames = (count: number, channels = 3) => ({
  class_type: 'TestFrames',
  inputs: { count, width: 6, height: 4, channels },
})
const dump = (id: string, slot = 0) => ({ class_type: 'TestDump', inputs: { source: [id, slot] } })
const workflow = { title: 'Bäume' }
const extraPngInfo = { workflow }

const names = (events: readonly EngineEvent[], id: string, key = 'images') =>
  files(events, id, key).map(({ folder, subfolder, filename }) => `${folder}/${subfolder}/${filename}`)

function advanced(prefix: string, format: string, depth: string, space: string) {
  const inputs = { images: ['1', 0], filename_prefix: prefix, format }
  return {
    class_type: 'SaveImageAdvanced',
    inputs: { ...inputs, 'format.bit_depth': depth, 'format.input_color_space': space },
  }
}

for (const channels of [1, 3, 4]) {
  for (const bits of [8, 16]) {
    test(`a PNG of ${bits} bit and ${channels} channels is saved with its notes right after the header`, async () => {
      const graph: GraphJson = { 1: frames(3, channels), 2: advanced('p/x', 'png', `${bits}-bit`, 'sRGB') }
      const events = await engine.run(graph, { extraPngInfo })
      const found = files(events, '2', 'images')
      assert.match(names(events, '2')[2], /^output\/p\/x_\d{5}\.png$/)
      const png = await bytesOf(found[2])
      const chunks = readChunks(png)
      assert.deepEqual(
        chunks.slice(0, 3).map(({ type }) => type),
        ['IHDR', 'tEXt', 'tEXt'],
      )
      assert.equal(Buffer.from(chunks[2].body).toString('latin1'), 'workflow\0{"title": "B\\u00e4ume"}')
      assert.deepEqual([png[24], png[25]], [bits, { 1: 0, 3: 2, 4: 6 }[channels]])
      const space = channels === 1 ? (bits === 16 ? 'grey16' : 'b-w') : bits === 16 ? 'rgb16' : 'srgb'
      const raw = await sharp(png)
        .toColourspace(space)
        .raw({ depth: bits === 16 ? 'ushort' : 'uchar' })
        .toBuffer()
      const value = bits === 16 ? raw.readUInt16LE(0) : raw[0]
      assert.equal(value, Math.trunc(Math.fround((2 ** bits - 1) * Math.fround(2 / 3))))
    })
  }
}

test('an EXR keeps floats in linear light, and numbers count over both formats', async () => {
  const events = await engine.run(
    { 1: frames(2), 2: advanced('e', 'exr', '32-bit float', 'HDR'), 3: dump('2') },
    { extraPngInfo },
  )
  assert.deepEqual(names(events, '2'), ['output//e_00001.exr', 'output//e_00002.exr'])
  const exr = await bytesOf(files(events, '2', 'images')[1])
  assert.equal(exr.readInt32LE(0), 20_000_630)
  assert.ok(exr.includes('workflow\0string\0'))
  assert.ok(exr.includes(Buffer.from(Float32Array.of(0.708, 0.292).buffer)))
  assert.deepEqual(seenTensor(events, '3').shape, [2, 4, 6, 3])
  const png = await engine.run({ 1: frames(1), 2: advanced('e', 'png', '8-bit', 'sRGB') })
  assert.deepEqual(names(png, '2'), ['output//e_00003.png'])
})

test('a format that does not exist is a missing argument, two channels are refused', async () => {
  const unknown = await engine.run({ 1: frames(1), 2: advanced('x', 'gif', '8-bit', 'sRGB') })
  assert.equal(failureOf(unknown).type, 'TypeError')
  for (const [format, depth] of [
    ['png', '8-bit'],
    ['exr', '32-bit float'],
  ]) {
    const two = await engine.run({ 1: frames(1, 2), 2: advanced('x', format, depth, 'sRGB') })
    assert.match(failureOf(two).message, /1, 3 or 4 channels, not 2/)
  }
})

const png = (fps: number, prefix = 'anim') => ({
  class_type: 'SaveAnimatedPNG',
  inputs: { images: ['1', 0], filename_prefix: prefix, fps, compress_level: 4 },
})
const webp = (more: object = {}) => ({
  class_type: 'SaveAnimatedWEBP',
  inputs: { images: ['1', 0], filename_prefix: 'w', fps: 6, lossless: true, quality: 80, method: 'default', ...more },
})

test('an animated PNG is one file that moves; a single frame does not', async () => {
  const events = await engine.run({ 1: frames(3), 2: png(6) }, { extraPngInfo })
  const { name, bytes } = await onlyFile(events, '2')
  assert.equal(name, '|anim_00001_.png')
  assert.deepEqual(reportOf(events, '2', 'animated'), [{ kind: 'value', value: true }])
  const types = readChunks(bytes).map(({ type }) => type)
  assert.deepEqual(types, ['IHDR', 'acTL', 'fcTL', 'IDAT', 'fcTL', 'fdAT', 'fcTL', 'fdAT', 'comf', 'comf', 'IEND'])
  const still = await engine.run({ 1: frames(1), 2: png(6) })
  assert.equal(lastOf(still, 'node_report').report.animated, undefined)
  assert.equal((await onlyFile(still, '2')).name, '|anim_00002_.png')
})

test('an animated WebP has every frame exactly, its times, and its notes', async () => {
  const events = await engine.run({ 1: frames(3), 2: webp() }, { extraPngInfo })
  const { name, bytes } = await onlyFile(events, '2')
  assert.equal(name, '|w_00001_.webp')
  const { pages, delay, loop, exif } = await sharp(bytes, { pages: -1 }).metadata()
  assert.deepEqual([pages, delay, loop], [3, [166, 166, 166], 0])
  assert.ok(exif?.includes('prompt:{"1": '))
  assert.ok(exif?.includes('workflow:{"title": "B\\u00e4ume"}'))
  const raw = await sharp(bytes, { pages: -1 }).raw().toBuffer()
  assert.deepEqual([raw[0], raw[72], raw[144]], [0, 85, 170])
})

test('a WebP of one frame, with alpha, in every method', async () => {
  for (const method of ['default', 'fastest', 'slowest']) {
    const events = await engine.run({ 1: frames(1, 4), 2: webp({ method, lossless: false }) }, { extraPngInfo })
    const { bytes } = await onlyFile(events, '2')
    const { width, height, exif } = await sharp(bytes).metadata()
    assert.deepEqual([width, height, exif?.includes('workflow:')], [6, 4, true])
    assert.equal(lastOf(events, 'node_report').report.animated, undefined)
  }
})

test('animations of other channels are refused in the words of the original', async () => {
  for (const saver of [png(6), webp()]) {
    const events = await engine.run({ 1: frames(2, 1), 2: saver })
    assert.deepEqual(failureOf(events), { type: 'TypeError', message: 'Cannot handle this data type: (1, 1, 1), |u1' })
  }
})

test('drawings are saved as files of their own and handed on', async () => {
  const svg = { data: ['<svg width="1"><g/></svg>', '<svg/>'] }
  const saver = (value: unknown) => ({
    class_type: 'SaveSVGNode',
    inputs: { svg: value, filename_prefix: 'svg/d%batch_num%' },
  })
  const events = await engine.run({ 1: saver(svg), 2: dump('1') }, { extraPngInfo })
  assert.deepEqual(names(events, '1'), ['output/svg/d0_00001_.svg', 'output/svg/d1_00002_.svg'])
  const text = (await bytesOf(files(events, '1', 'images')[0])).toString()
  assert.match(text, /^<svg width="1">\n<metadata><!\[CDATA\[\n\{\n {2}"prompt": \{/)
  assert.match(text, /"title": "B\\u00e4ume"/)
  const refused = await engine.run({ 1: saver('<svg/>') })
  assert.deepEqual(failureOf(refused), { type: 'AttributeError', message: "'str' object has no attribute 'data'" })
})

test('a mask is shown in grey, whatever its rank, and handed on', async () => {
  const mask = { class_type: 'TestMask', inputs: { value: 0.5, width: 5, height: 3 } }
  const events = await engine.run({
    1: mask,
    2: { class_type: 'MaskPreview', inputs: { mask: ['1', 0] } },
    3: dump('2'),
  })
  const { file, bytes } = await onlyFile(events, '2')
  assert.match(file.filename, /^ComfyUI_temp_[a-z]{5}_00001_\.png$/)
  assert.equal(file.folder, 'temp')
  assert.deepEqual(reportOf(events, '2', 'animated'), [{ kind: 'value', value: false }])
  const { data, info } = await sharp(bytes).raw().toBuffer({ resolveWithObject: true })
  assert.deepEqual([info.width, info.height, info.channels, data[0], data[44]], [5, 3, 3, 127, 127])
  assert.deepEqual(seenTensor(events, '3').shape, [1, 3, 5])
})

test('a comparison shows either side, or neither', async () => {
  const compare = (more: object) => ({ class_type: 'ImageCompare', inputs: { compare_view: '', ...more } })
  const both = await engine.run({ 1: frames(2), 2: compare({ image_a: ['1', 0], image_b: ['1', 0] }) })
  const [first, second] = names(both, '2', 'a_images')
  assert.match(first, /^temp\/\/comfy\.compare\.a_temp_[a-z]{5}_00001_\.png$/)
  assert.match(second, /_00002_\.png$/)
  assert.match(names(both, '2', 'b_images')[0], /^temp\/\/comfy\.compare\.b_temp_[a-z]{5}_00001_\.png$/)
  const none = await engine.run({ 2: compare({}) })
  assert.deepEqual([names(none, '2', 'a_images'), names(none, '2', 'b_images')], [[], []])
})

const picture = (pixels: number[], width: number, channels: 3 | 4) =>
  sharp(Uint8Array.from(pixels), { raw: { width, height: pixels.length / channels / width, channels } })
    .png()
    .toBuffer()

test('an output of an earlier job and a captured picture are read like uploads', async () => {
  const bytes = await picture([255, 0, 0, 51, 0, 255, 0, 255], 2, 4)
  const webcam = { image: 'webcam/1.png', width: 0, height: 0, capture_on_queue: true }
  const graph: GraphJson = {
    1: { class_type: 'LoadImageOutput', inputs: { image: 'x.png [output]' } },
    2: { class_type: 'WebcamCapture', inputs: webcam },
    3: dump('1'),
    4: dump('1', 1),
    5: dump('2'),
  }
  const events = await engine.run(graph, { files: { 'x.png [output]': bytes, 'webcam/1.png': bytes } })
  assert.deepEqual([...seenTensor(events, '3').data], [1, 0, 0, 0, 1, 0])
  assert.ok(Math.abs(seenTensor(events, '4').data[0] - 0.8) < 1e-6)
  assert.deepEqual(seenTensor(events, '5').shape, [1, 1, 2, 3])
  const missing = await engine.run({ 1: graph[1], 2: dump('1') })
  assert.deepEqual(failureOf(missing), { type: 'FileNotFoundError', message: 'Invalid image file: x.png [output]' })
})

test('what was painted lies over the picture; the mask is where', async () => {
  const layer = await picture([255, 0, 0, 255, 0, 0, 255, 0], 2, 4)
  const paint = (more: object) => ({
    class_type: 'Painter',
    inputs: { mask: 'layer.png', width: 64, height: 64, bg_color: '#00ff00', ...more },
  })
  const graph: GraphJson = { 1: paint({}), 2: dump('1'), 3: dump('1', 1), 4: paint({ mask: '' }), 5: dump('4', 1) }
  const events = await engine.run(graph, { files: { 'layer.png': layer } })
  const painted = seenTensor(events, '2')
  assert.deepEqual(painted.shape, [1, 64, 64, 3])
  // Left half painted red, right half still the canvas.
  assert.deepEqual([...painted.data.subarray(0, 3)], [1, 0, 0])
  assert.deepEqual([...painted.data.subarray(189, 192)], [0, 1, 0])
  const mask = seenTensor(events, '3')
  assert.deepEqual([mask.shape, mask.data[0], mask.data[63]], [[1, 64, 64], 1, 0])
  assert.ok(seenTensor(events, '5').data.every((value) => value === 0))
  const { file } = await onlyFile(events, '1')
  assert.equal(file.folder, 'temp')
  const again = await engine.run(graph, { files: { 'layer.png': layer } })
  assert.equal(lastOf(again, 'node_report').cached, true)
})

test('images over the socket come whole, in order, without files, every time', async () => {
  const graph: GraphJson = { 1: frames(2), 2: { class_type: 'SaveImageWebsocket', inputs: { images: ['1', 0] } } }
  for (const attempt of [1, 2]) {
    const events = await engine.run(graph)
    const told = events.filter((event) => event.type === 'node_progress' || event.type === 'preview')
    assert.deepEqual(
      told.map(({ type }) => type),
      ['node_progress', 'preview', 'node_progress', 'preview'],
      `run ${attempt}`,
    )
    const levels = []
    for (const event of told) {
      if (event.type !== 'preview') continue
      assert.equal(event.contentType, 'image/png')
      levels.push((await sharp(event.bytes).raw().toBuffer())[0])
    }
    assert.deepEqual(levels, [0, 127])
    assert.ok(!events.some(({ type }) => type === 'node_report'))
  }
})

/** Videos as files: saved, read back, copied, refused, cancelled. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { after, before, test } from 'node:test'
import type { EngineEvent } from '../../graph/run-event.ts'
import { FIXTURES, type GraphJson, reportOf, type TestEngine, texts } from '../support/harness.ts'
import { withoutFfmpeg } from '../support/media.ts'
import {
  failureOf,
  onlyFile,
  openMediaEngine,
  probed,
  seenAudio,
  seenTensor,
  seenValue,
} from '../support/media-engine.ts'
import {
  components,
  create,
  createClips,
  dump,
  FRAMES,
  frames,
  numbers,
  range,
  report,
  save,
  slice,
  tone,
} from '../support/video-graphs.ts'

let engine: TestEngine
before(async () => {
  engine = await openMediaEngine()
})
after(() => engine[Symbol.asyncDispose]())

const skip = withoutFfmpeg
const clip = createClips(() => engine)

const SAVED = [
  { format: 'auto', codec: 'auto', extension: 'mp4', video: 'h264', audio: 'aac' },
  { format: 'mkv', codec: 'h264', extension: 'mkv', video: 'h264', audio: 'aac' },
  { format: 'webm', codec: 'auto', extension: 'webm', video: 'av1', audio: 'opus' },
  { format: 'mp4', codec: 'av1', extension: 'mp4', video: 'av1', audio: 'aac' },
] as const

for (const { format, codec, extension, video, audio } of SAVED) {
  test(`${format} with ${codec} is saved as ${video} and ${audio}, sound cut to the frames`, { skip }, async () => {
    const graph: GraphJson = {
      1: frames(),
      2: tone(5),
      v: create('1', { audio: ['2', 0] }),
      3: save('v', { filename_prefix: `video/${format}-${codec}`, format, 'format.codec': codec }),
    }
    const workflow = { note: 'x=y;#\\' }
    const events = await engine.run(graph, { extraPngInfo: { workflow } })
    const { name, bytes } = await onlyFile(events, '3')
    assert.equal(name, `video|${format}-${codec}_00001_.${extension}`)
    assert.deepEqual(reportOf(events, '3', 'animated'), [{ kind: 'value', value: true }])
    const { streams, format: container } = report(bytes)
    assert.deepEqual(
      streams.map(({ codec_name }) => codec_name),
      [video, audio],
    )
    assert.equal(streams[0].pix_fmt, 'yuv420p')
    assert.equal(Number(streams[0].nb_read_frames), FRAMES)
    assert.ok(Math.abs(Number(container.duration) - 2) < 0.1)
    const tags = Object.fromEntries(Object.entries(container.tags).map(([key, value]) => [key.toLowerCase(), value]))
    assert.deepEqual(JSON.parse(tags.workflow), workflow)
    assert.equal(JSON.parse(tags.prompt).v.class_type, 'CreateVideo')
  })
}

test('a saved video reads back: frames, rate and sound', { skip }, async () => {
  const bytes = await clip('mp4', 'h264')
  const graph: GraphJson = { v: { class_type: 'LoadVideo', inputs: { file: 'x.mp4' } }, 1: components('v') }
  for (const slot of range(0, 5)) graph[`d${slot}`] = dump('1', slot)
  const events = await engine.run(graph, { files: { 'x.mp4': bytes } })
  assert.deepEqual(seenTensor(events, 'd0').shape, [FRAMES, 64, 96, 3])
  assert.deepEqual(numbers(events, 'd0'), range(0, FRAMES))
  const sound = seenAudio(events, 'd1')
  assert.deepEqual([sound.shape[1], sound.rate], [2, 44_100])
  assert.ok(Math.abs(sound.shape[2] / 44_100 - 2) < 0.1)
  assert.deepEqual([seenValue(events, 'd2'), seenValue(events, 'd3'), seenValue(events, 'd4')], [12, 8, 'sRGB'])
})

test('ten bit go in and come out', { skip }, async () => {
  const graph: GraphJson = {
    1: frames(),
    v: create('1', { bit_depth: 10 }),
    3: save('v', {
      format: 'mp4',
      'format.codec': 'h264',
      'format.codec.encoding': 're-encode',
      'format.codec.encoding.crf': 10,
      'format.codec.encoding.color_space': 'HDR PQ',
    }),
  }
  const { bytes } = await onlyFile(await engine.run(graph), '3')
  const [stream] = report(bytes).streams
  assert.deepEqual(
    [stream.pix_fmt, stream.color_space, stream.color_transfer],
    ['yuv420p10le', 'bt2020nc', 'smpte2084'],
  )
  const back: GraphJson = {
    v: { class_type: 'LoadVideo', inputs: { file: 'x' } },
    1: components('v'),
    2: dump('1'),
    3: dump('1', 3),
    4: dump('1', 4),
  }
  const events = await engine.run(back, { files: { x: bytes } })
  assert.deepEqual(numbers(events, '2'), range(0, FRAMES))
  assert.deepEqual([seenValue(events, '3'), seenValue(events, '4')], [10, 'HDR PQ'])
})

/** A digest of every packet as it lies in the file. */
function packets(bytes: Uint8Array): string {
  const args = ['-v', 'error', '-i', 'pipe:0', '-map', '0:v', '-c', 'copy', '-f', 'md5', 'pipe:1']
  return spawnSync('ffmpeg', args, { input: bytes }).stdout.toString()
}

test('a file that is already what is wanted keeps its streams and gets our notes', { skip }, async () => {
  const bytes = await clip('mkv', 'h264')
  const load = { class_type: 'LoadVideo', inputs: { file: 'x.mkv' } }
  const graph: GraphJson = {
    v: load,
    1: save('v', { filename_prefix: 'kept', format: 'mkv', 'format.codec': 'auto' }),
    2: save('v', { filename_prefix: 'kept', format: 'mkv', 'format.codec': 'av1' }),
  }
  const events = await engine.run(graph, { files: { 'x.mkv': bytes } })
  const kept = await onlyFile(events, '1')
  assert.equal(packets(kept.bytes), packets(bytes))
  assert.match(Object.values(report(kept.bytes).format.tags).join(), /LoadVideo/)
  const other = report((await onlyFile(events, '2')).bytes)
  assert.deepEqual(
    other.streams.map(({ codec_name }) => codec_name),
    ['av1', 'aac'],
  )
})

test('a part of a file is encoded anew', { skip }, async () => {
  const load = { class_type: 'LoadVideo', inputs: { file: 'x.mp4' } }
  const graph: GraphJson = { v: load, 1: slice(0.5, 1), 2: save('1', { format: 'auto', 'format.codec': 'auto' }) }
  const events = await engine.run(graph, { files: { 'x.mp4': await clip('mp4', 'h264') } })
  const { streams } = report((await onlyFile(events, '2')).bytes)
  assert.deepEqual(
    streams.map(({ codec_name }) => codec_name),
    ['h264', 'aac'],
  )
  assert.ok(Math.abs(Number(streams[0].nb_read_frames) - 12) <= 1)
})

for (const [codec, channels, pixels] of [
  ['vp9', 3, 'yuv420p'],
  ['vp9', 4, 'yuv420p'],
  ['av1', 3, 'yuv420p10le'],
] as const) {
  test(`SaveWEBM with ${codec} and ${channels} channels`, { skip }, async () => {
    const inputs = { images: ['1', 0], filename_prefix: 'w', codec, fps: 23.976, crf: 32 }
    const graph: GraphJson = {
      1: frames({ channels, width: codec === 'vp9' ? 97 : 96, height: codec === 'vp9' ? 67 : 64 }),
      2: { class_type: 'SaveWEBM', inputs },
    }
    const { name, bytes } = await onlyFile(await engine.run(graph), '2')
    assert.match(name, /^\|w_0000\d_\.webm$/)
    const { streams, format } = report(bytes)
    assert.deepEqual([streams[0].codec_name, streams[0].pix_fmt], [codec, pixels])
    const [top, bottom] = (streams[0].avg_frame_rate ?? '').split('/').map(Number)
    assert.ok(Math.abs(top / bottom - 23.976) < 0.1)
    // Transparency lies beside the stream, which tells of it.
    const tags = JSON.stringify(probed(bytes, 'stream_tags'))
    assert.equal(/alpha_mode/i.test(tags), channels === 4)
    assert.match(Object.values(format.tags).join(), /SaveWEBM/)
  })
}

test('H.264 of an odd size is refused in words', { skip }, async () => {
  const graph: GraphJson = {
    1: frames({ width: 33 }),
    v: create('1'),
    2: save('v', { format: 'mp4', 'format.codec': 'h264' }),
  }
  assert.deepEqual(failureOf(await engine.run(graph)), {
    type: 'ValueError',
    message: 'H.264 needs an even width and height, not 33 x 64',
  })
})

test('a path never shows, and cannot be smuggled in', async () => {
  const load: GraphJson = {
    v: { class_type: 'LoadVideo', inputs: { file: 'x.mp4' } },
    1: { class_type: 'PreviewAny', inputs: { source: ['v', 0] } },
  }
  const events = await engine.run(load, { files: { 'x.mp4': Buffer.from('x') } })
  assert.match(String(texts(events, '1')[0]), /x\.mp4/)
  assert.doesNotMatch(String(texts(events, '1')[0]), /[\\/]/)
  const forged = { source: '/etc/hostname', name: 'x', start: 0, duration: 0 }
  const graph: GraphJson = { 1: { class_type: 'GetVideoComponents', inputs: { video: forged } }, 2: dump('1') }
  assert.equal(failureOf(await engine.run(graph)).message, "'dict' object has no attribute 'get_components'")
})

test('a file without pictures, and one that is no media, are refused by name', { skip }, async () => {
  const graph: GraphJson = {
    v: { class_type: 'LoadVideo', inputs: { file: 'x.mp4' } },
    1: components('v'),
    2: dump('1'),
  }
  const garbage = await engine.run(graph, { files: { 'x.mp4': Buffer.from('garbage') } })
  assert.deepEqual(failureOf(garbage), {
    type: 'av.error.InvalidDataError',
    message: "Invalid data found when processing input: 'x.mp4'",
  })
  const wav = await engine.run(graph, {
    files: { 'x.mp4': `${FIXTURES}golden/inputs/mono.wav` },
  })
  assert.deepEqual(failureOf(wav), { type: 'ValueError', message: "No video stream found in file 'x.mp4'" })
})

test('frames beyond the pixel limit are refused before they are decoded', { skip }, async () => {
  await using small = await openMediaEngine({ maxImagePixels: 100 })
  const graph: GraphJson = {
    v: { class_type: 'LoadVideo', inputs: { file: 'x.mp4' } },
    1: components('v'),
    2: dump('1'),
  }
  const events = await small.run(graph, { files: { 'x.mp4': await clip('mp4', 'h264') } })
  assert.match(failureOf(events).message, /^'x\.mp4': frames of 96 x 64 exceed the limit of 100 pixels$/)
})

test('a video with a truncated end still shows what came before it', { skip }, async () => {
  const bytes = await clip('mkv', 'h264')
  const graph: GraphJson = {
    v: { class_type: 'LoadVideo', inputs: { file: 'x.mkv' } },
    1: components('v'),
    2: dump('1'),
  }
  const events = await engine.run(graph, { files: { 'x.mkv': bytes.subarray(0, Math.floor(bytes.length * 0.6)) } })
  const seen = numbers(events, '2')
  assert.ok(seen.length > 0 && seen.length < FRAMES)
  // The last one may be missing its neighbours.
  assert.deepEqual(seen.slice(0, -1), range(0, seen.length - 1))
})

test('a cancel in the middle of encoding ends the run there and frees the thread', { skip }, async () => {
  const controller = new AbortController()
  const graph: GraphJson = {
    1: frames({ count: 60, width: 640, height: 640 }),
    v: create('1'),
    2: save('v', {
      format: 'mp4',
      'format.codec': 'h264',
      'format.codec.encoding': 're-encode',
      'format.codec.encoding.crf': 0,
      'format.codec.encoding.color_space': 'auto',
    }),
  }
  const onEvent = (event: EngineEvent) => {
    if (event.type === 'node_progress' && event.nodeId === '2') controller.abort()
  }
  await using wide = await openMediaEngine({ memoryLimitBytes: 1_073_741_824 })
  const events = await wide.run(graph, { signal: controller.signal, onEvent })
  assert.equal(events.at(-1)?.type, 'interrupted')
  assert.ok(!events.some((event) => event.type === 'node_finished' && event.nodeId === '2'))
  // The only compute thread must be free again: the next call needs it.
  const next = await wide.run({
    1: { class_type: 'EmptyImage', inputs: { width: 256, height: 256, batch_size: 1, color: 3 } },
    2: dump('1'),
  })
  assert.equal(next.at(-1)?.type, 'succeeded')
})

test('without ffmpeg a video can be made and cut, and saving says what to install', async () => {
  await using bare = await openMediaEngine({ environment: { ...process.env, PATH: '' } })
  const graph: GraphJson = { 1: frames(), v: create('1'), 2: slice(1, 0), 3: components('2'), 4: dump('3') }
  assert.deepEqual(numbers(await bare.run(graph), '4'), range(12, 24))
  const { type, message } = failureOf(
    await bare.run({ ...graph, 5: save('v', { format: 'auto', 'format.codec': 'auto' }) }),
  )
  assert.equal(type, 'ModelDownloadError')
  assert.match(message, /^writing a video needs the program ffmpeg.*apt-get install ffmpeg/)
})

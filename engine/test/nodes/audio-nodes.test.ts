/** Audio nodes in a real engine: what goldens do not cover. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { bytesOf, type GraphJson, type TestEngine } from '../support/harness.ts'
import { wavFile, withoutFfmpeg } from '../support/media.ts'
import { failureOf, files, onlyFile, openMediaEngine, probed, seenAudio, seenValue } from '../support/media-engine.ts'
import { readFlac } from '../support/read-flac.ts'

let engine: TestEngine
before(async () => {
  engine = await openMediaEngine()
})
after(() => engine[Symbol.asyncDispose]())

function tone(rate: number, channels = 2, more: { seconds?: number; batch?: number; frequency?: number } = {}) {
  const inputs = { frequency: 500, seconds: 0.1, batch: 1, ...more, rate, channels }
  return { class_type: 'TestTone', inputs }
}

const dump = (id: string, slot = 0) => ({ class_type: 'TestDump', inputs: { source: [id, slot] } })

test('audio is saved as FLAC per element of the batch, named without an underscore at the end', async () => {
  const graph: GraphJson = {
    1: tone(44_100, 2, { batch: 2 }),
    2: { class_type: 'SaveAudio', inputs: { audio: ['1', 0], filename_prefix: 'audio/%width%x' } },
    3: dump('2'),
  }
  const extraPngInfo = { workflow: { title: 'Bäume' } }
  const events = await engine.run(graph, { extraPngInfo })
  const saved = files(events, '2', 'audio')
  assert.deepEqual(
    saved.map(({ filename, subfolder, folder, contentType }) => `${folder} ${subfolder}/${filename} ${contentType}`),
    ['output audio/0x_00001.flac audio/flac', 'output audio/0x_00002.flac audio/flac'],
  )
  const file = readFlac(await bytesOf(saved[1]))
  assert.deepEqual([file.sampleRate, file.channels.length, file.channels[0].length], [44_100, 2, 4410])
  assert.match(file.comments[0], /^prompt=\{"1": \{"class_type": "TestTone"/)
  assert.equal(file.comments[1], 'workflow={"title": "B\\u00e4ume"}')
  assert.deepEqual(seenAudio(events, '3').shape, [2, 2, 4410])
})

test('a preview of sound is a FLAC in the temporary folder', async () => {
  const events = await engine.run({ 1: tone(8000, 1), 2: { class_type: 'PreviewAudio', inputs: { audio: ['1', 0] } } })
  const { file } = await onlyFile(events, '2', 'audio')
  assert.match(file.filename, /^ComfyUI_temp_[a-z]{5}_00001\.flac$/)
  assert.equal(file.folder, 'temp')
})

for (const classType of ['SaveAudio', 'SaveAudioMP3', 'SaveAudioOpus']) {
  test(`${classType} tells that there is no sound`, async () => {
    const inputs = { audio: ['1', 0], filename_prefix: 'x', quality: '128k' }
    const events = await engine.run({
      1: { class_type: 'TestNothing', inputs: {} },
      2: { class_type: classType, inputs },
    })
    assert.deepEqual(failureOf(events), {
      type: 'ValueError',
      message: `${classType}: input audio is None (source video may have no audio track).`,
    })
  })
}

test('what is no audio is refused before the node runs', async () => {
  const inputs = { audio: 'a text', volume: 3 }
  const graph: GraphJson = { 1: { class_type: 'AudioAdjustVolume', inputs }, 2: dump('1') }
  assert.deepEqual(failureOf(await engine.run(graph)), { type: 'TypeError', message: "'str' object is no audio" })
})

test('a trim may count from the end, and refuses what lies outside', async () => {
  const trim = (start: number, duration: number): GraphJson => ({
    1: tone(1000, 1, { seconds: 1 }),
    2: { class_type: 'TrimAudioDuration', inputs: { audio: ['1', 0], start_index: start, duration } },
    3: dump('2'),
  })
  assert.deepEqual(seenAudio(await engine.run(trim(-0.25, 60)), '3').shape, [1, 1, 250])
  assert.deepEqual(seenAudio(await engine.run(trim(-99, 0.1)), '3').shape, [1, 1, 100])
  assert.deepEqual(seenAudio(await engine.run(trim(99, 1)), '3').shape, [1, 1, 1])
  const { type, message } = failureOf(await engine.run(trim(0, 0)))
  assert.equal(type, 'ValueError')
  assert.match(message, /^TrimAudioDuration: Start time must be less than end time/)
  assert.equal(failureOf(await engine.run(trim(1e308, 1))).type, 'OverflowError')
})

test('different rates meet at the higher one', async () => {
  const graph: GraphJson = {
    1: tone(8000, 1),
    2: tone(48_000, 2),
    3: { class_type: 'AudioConcat', inputs: { audio1: ['1', 0], audio2: ['2', 0], direction: 'after' } },
    4: { class_type: 'AudioMerge', inputs: { audio1: ['1', 0], audio2: ['2', 0], merge_method: 'add' } },
    5: dump('3'),
    6: dump('4'),
  }
  const events = await engine.run(graph)
  const joined = seenAudio(events, '5')
  assert.deepEqual([joined.shape, joined.rate], [[1, 2, 9600], 48_000])
  const merged = seenAudio(events, '6')
  assert.deepEqual([merged.shape, merged.rate], [[1, 2, 4800], 48_000])
  // Both first channels carry the same tone: together they reach full scale and no more.
  const peak = merged.data.reduce((most, value) => Math.max(most, Math.abs(value)), 0)
  assert.ok(peak > 0.97 && peak <= 1, `peak ${peak}`)
})

test('a merge that is too loud is brought back to full scale as a whole', async () => {
  const louder = { class_type: 'AudioAdjustVolume', inputs: { audio: ['1', 0], volume: 12 } }
  const inputs = { audio1: ['2', 0], audio2: ['2', 0], merge_method: 'add' }
  const graph: GraphJson = { 1: tone(8000, 1), 2: louder, 3: { class_type: 'AudioMerge', inputs }, 4: dump('3') }
  const { data } = seenAudio(await engine.run(graph), '4')
  assert.equal(
    data.reduce((most, value) => Math.max(most, Math.abs(value)), 0),
    1,
  )
})

test('channels come apart and together again, and only where that makes sense', async () => {
  const split = (id: string) => ({ class_type: 'SplitAudioChannels', inputs: { audio: [id, 0] } })
  const join = (left: unknown, right: unknown) => ({
    class_type: 'JoinAudioChannels',
    inputs: { audio_left: left, audio_right: right },
  })
  const nothing = { class_type: 'TestNothing', inputs: {} }
  const events = await engine.run({
    1: tone(8000),
    2: split('1'),
    3: join(['2', 0], ['2', 1]),
    4: dump('1'),
    5: dump('3'),
    6: nothing,
    7: join(['2', 0], ['6', 0]),
    8: dump('7'),
    9: join(['6', 0], ['6', 0]),
    10: dump('9'),
  })
  assert.deepEqual(seenAudio(events, '5'), seenAudio(events, '4'))
  assert.deepEqual(seenAudio(events, '8').shape, [1, 1, 800])
  assert.equal(seenValue(events, '10'), null)
  const mono = await engine.run({ 1: tone(8000, 1), 2: split('1'), 3: dump('2') })
  assert.match(failureOf(mono).message, /^AudioSplit: Input audio must be stereo \(2 channels\), got 1 channel\(s\)\.$/)
  const stereo = await engine.run({ 1: tone(8000), 2: join(['1', 0], ['1', 0]), 3: dump('2') })
  assert.equal(failureOf(stereo).message, 'AudioJoin: Both input audios must be mono.')
})

test('an equalizer at rest changes nothing; a raised band makes its tone louder', async () => {
  const bands = { low_freq: 100, mid_freq: 1000, mid_q: 0.7, high_freq: 5000 }
  const equalizer = (mid: number) => ({
    class_type: 'AudioEqualizer3Band',
    inputs: { audio: ['1', 0], ...bands, low_gain_dB: 0, mid_gain_dB: mid, high_gain_dB: 0 },
  })
  const source = tone(48_000, 1, { frequency: 1000, seconds: 0.2 })
  const events = await engine.run({
    1: source,
    2: equalizer(0),
    3: equalizer(-6),
    4: dump('1'),
    5: dump('2'),
    6: dump('3'),
  })
  assert.deepEqual(seenAudio(events, '5'), seenAudio(events, '4'))
  const settled = seenAudio(events, '6').data.subarray(4800)
  const peak = settled.reduce((most, value) => Math.max(most, Math.abs(value)), 0)
  assert.ok(Math.abs(peak - 0.5 * 10 ** (-6 / 20)) < 0.002, `peak ${peak}`)
})

test('more silence than memory allows is refused clearly', async () => {
  const inputs = { duration: 1e6, sample_rate: 48_000, channels: 2 }
  const events = await engine.run({ 1: { class_type: 'EmptyAudio', inputs }, 2: dump('1') })
  assert.equal(failureOf(events).type, 'MemoryError')
})

test('LoadAudio reads a WAV that the run is given, and runs again only when its bytes change', async () => {
  const sound = (level: number) =>
    wavFile(Buffer.from(Int16Array.of(level, -level).buffer), { tag: 1, bits: 16, channels: 1, rate: 8000 })
  const graph: GraphJson = { 1: { class_type: 'LoadAudio', inputs: { audio: 'x.wav' } }, 2: dump('1') }
  const first = await engine.run(graph, { files: { 'x.wav': sound(16_384) } })
  assert.deepEqual([...seenAudio(first, '2').data], [0.5, -0.5])
  const second = await engine.run(graph, { files: { 'x.wav': sound(8192) } })
  assert.deepEqual([...seenAudio(second, '2').data], [0.25, -0.25])
})

const LOSSY = [
  { classType: 'SaveAudioMP3', quality: 'V0', codec: 'mp3', extension: 'mp3', rate: 44_100, savedRate: 44_100 },
  { classType: 'SaveAudioMP3', quality: '128k', codec: 'mp3', extension: 'mp3', rate: 44_100, savedRate: 44_100 },
  { classType: 'SaveAudioOpus', quality: '64k', codec: 'opus', extension: 'opus', rate: 22_050, savedRate: 48_000 },
] as const

for (const { classType, quality, codec, extension, rate, savedRate } of LOSSY) {
  test(`${classType} at ${quality} makes a file that remembers and sounds alike`, { skip: withoutFfmpeg }, async () => {
    const graph: GraphJson = {
      1: tone(rate, 2, { seconds: 0.5 }),
      2: { class_type: classType, inputs: { audio: ['1', 0], filename_prefix: 'lossy', quality } },
    }
    const workflow = { text: 'a=b; # \\ "x"\n', list: Array.from({ length: 40_000 }, (_, i) => i) }
    const events = await engine.run(graph, { extraPngInfo: { workflow } })
    const { name, bytes } = await onlyFile(events, '2', 'audio')
    assert.match(name, new RegExp(`^\\|lossy_0000\\d\\.${extension}$`))
    const report = probed(bytes, 'stream=codec_name,sample_rate:format_tags:stream_tags') as unknown as {
      streams: { codec_name: string; sample_rate: string; tags?: Record<string, string> }[]
      format: { tags?: Record<string, string> }
    }
    const [stream] = report.streams
    assert.deepEqual([stream.codec_name, Number(stream.sample_rate)], [codec, savedRate])
    const tags = { ...report.format.tags, ...stream.tags }
    assert.deepEqual(JSON.parse(tags.workflow), workflow)
    assert.equal(JSON.parse(tags.prompt)['1'].class_type, 'TestTone')
    const again: GraphJson = { 1: { class_type: 'LoadAudio', inputs: { audio: 'back' } }, 2: dump('1') }
    const back = seenAudio(await engine.run(again, { files: { back: bytes } }), '2')
    assert.equal(back.shape[1], 2)
    assert.ok(Math.abs(back.shape[2] / back.rate - 0.5) < 0.1)
    const middle = back.data.subarray(back.shape[2] / 2, back.shape[2] / 2 + 2000)
    const peak = middle.reduce((most, value) => Math.max(most, Math.abs(value)), 0)
    assert.ok(peak > 0.4 && peak < 0.6, `peak ${peak}`)
  })
}

test('SaveAudioAdvanced saves in the chosen format', { skip: withoutFfmpeg }, async () => {
  const saver = (inputs: object) => ({
    class_type: 'SaveAudioAdvanced',
    inputs: { audio: ['1', 0], filename_prefix: 'adv', ...inputs },
  })
  const events = await engine.run({
    1: tone(8000, 1),
    2: saver({ format: 'flac' }),
    3: saver({ format: 'mp3', 'format.quality': '320k' }),
    4: saver({ format: 'opus', 'format.quality': '96k' }),
  })
  const endings = await Promise.all(
    ['2', '3', '4'].map(async (id) => (await onlyFile(events, id, 'audio')).name.split('.')[1]),
  )
  assert.deepEqual(endings, ['flac', 'mp3', 'opus'])
})

test('what is no media file is refused by its name, never by its path', { skip: withoutFfmpeg }, async () => {
  const graph: GraphJson = { 1: { class_type: 'LoadAudio', inputs: { audio: 'x.mp3' } }, 2: dump('1') }
  const refused = { type: 'av.error.InvalidDataError', message: "Invalid data found when processing input: 'x.mp3'" }
  const playlist = '#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile:///etc/hostname\n#EXT-X-ENDLIST\n'
  for (const content of ['not media', '', playlist, "ffconcat version 1.0\nfile '/etc/hostname'\n"]) {
    assert.deepEqual(failureOf(await engine.run(graph, { files: { 'x.mp3': Buffer.from(content) } })), refused)
  }
})

test('without ffmpeg the node says what to install, and everything that needs none still works', async () => {
  await using bare = await openMediaEngine({ environment: { ...process.env, PATH: '' } })
  const load: GraphJson = { 1: { class_type: 'LoadAudio', inputs: { audio: 'x.mp3' } }, 2: dump('1') }
  const { type, message } = failureOf(await bare.run(load, { files: { 'x.mp3': Buffer.from('ID3') } }))
  assert.equal(type, 'ModelDownloadError')
  assert.match(message, /^reading 'x\.mp3' needs the program ffprobe.*apt-get install ffmpeg/)
  const inputs = { audio: ['1', 0], filename_prefix: 'x', quality: '64k' }
  const save = await bare.run({ 1: tone(8000), 2: { class_type: 'SaveAudioOpus', inputs } })
  assert.match(failureOf(save).message, /^writing opus audio needs the program ffmpeg/)
  const flac = await bare.run({ 1: tone(8000), 2: { class_type: 'SaveAudio', inputs } })
  assert.equal(files(flac, '2', 'audio').length, 1)
})

/** Sound in files, as far as we read and write it without help. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { readWav } from '../../media/audio.ts'
import { readAudio } from '../../media/audio-files.ts'
import { encodeFlac } from '../../media/encode-flac.ts'
import type { Tensor } from '../../tensor/tensor.ts'
import { plainWork, type WavOptions, waveformOf, wavFile, withoutFfmpeg } from '../support/media.ts'
import { readFlac } from '../support/read-flac.ts'

let folder: string
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sound-files-'))
})
after(() => rm(folder, { recursive: true }))

async function stored(bytes: Uint8Array): Promise<string> {
  const path = join(folder, 'sound')
  await writeFile(path, bytes)
  return path
}

async function read(data: Buffer, options: WavOptions) {
  return readWav(await stored(wavFile(data, options)), plainWork)
}

const stereo = { channels: 2, rate: 8000 }

const KINDS: readonly { name: string; tag: number; bits: number; write(value: number): Buffer }[] = [
  { name: '8-bit', tag: 1, bits: 8, write: (x) => Buffer.from([Math.round(x * 128) + 128]) },
  { name: '16-bit', tag: 1, bits: 16, write: (x) => Buffer.from(Int16Array.of(x * 32_768).buffer) },
  {
    name: '24-bit',
    tag: 1,
    bits: 24,
    write: (x) => Buffer.from(Int32Array.of(x * 8_388_608).buffer).subarray(0, 3),
  },
  { name: '32-bit', tag: 1, bits: 32, write: (x) => Buffer.from(Int32Array.of(x * 2_147_483_648).buffer) },
  { name: 'float', tag: 3, bits: 32, write: (x) => Buffer.from(Float32Array.of(x).buffer) },
  { name: 'double', tag: 3, bits: 64, write: (x) => Buffer.from(Float64Array.of(x).buffer) },
]

for (const { name, tag, bits, write } of KINDS) {
  test(`a WAV of ${name} samples is read exactly, channel by channel`, async () => {
    const frames = [0, 0.5, -0.5, -1, 0.25, -0.75]
    const audio = await read(Buffer.concat(frames.map(write)), { tag, bits, ...stereo })
    assert.deepEqual(audio?.waveform.shape, [1, 2, 3])
    assert.deepEqual([...(audio?.waveform.data ?? [])], [0, -0.5, 0.25, 0.5, -1, -0.75])
    assert.equal(audio?.sampleRate, 8000)
  })
}

test('the extensible form and unknown chunks of odd length are understood', async () => {
  const odd = Buffer.from('LIST\x03\0\0\0abc\0', 'latin1')
  const plain = wavFile(Buffer.from(Int16Array.of(16_384).buffer), {
    tag: 1,
    bits: 16,
    channels: 1,
    rate: 22_050,
    extra: odd,
  })
  assert.equal((await readWav(await stored(plain), plainWork))?.waveform.data[0], 0.5)
  const extensible = Buffer.concat([plain.subarray(0, 36), Buffer.alloc(24), plain.subarray(36)])
  extensible.writeUInt32LE(40, 16)
  extensible.writeUInt16LE(0xfffe, 20)
  extensible.writeUInt16LE(1, 44)
  assert.equal((await readWav(await stored(extensible), plainWork))?.waveform.data[0], 0.5)
})

for (const claimedBytes of [0, 0xffff_ffff, 4_000_000_000]) {
  test(`a header that claims ${claimedBytes} bytes of samples is not believed`, async () => {
    const audio = await read(Buffer.alloc(9), { tag: 1, bits: 16, ...stereo, claimedBytes })
    assert.deepEqual(audio?.waveform.shape, [1, 2, 2])
  })
}

test('a WAV of an unknown kind, and what is no WAV, are left to ffmpeg', async () => {
  assert.equal(await readWav(await stored(Buffer.from('RIFF')), plainWork), null)
  assert.equal(await readWav(await stored(Buffer.alloc(0)), plainWork), null)
  assert.equal(await readWav(await stored(Buffer.from('ID3 is something else entirely')), plainWork), null)
  assert.equal(await read(Buffer.alloc(8), { tag: 7, bits: 8, ...stereo }), null)
  assert.equal(await read(Buffer.alloc(8), { tag: 1, bits: 16, channels: 0, rate: 8000 }), null)
})

test('a WAV without a single sample is refused as upstream does', async () => {
  const path = await stored(wavFile(Buffer.alloc(0), { tag: 1, bits: 16, ...stereo }))
  await assert.rejects(readAudio({ path, name: 'empty.wav' }, plainWork), { message: 'No audio frames decoded.' })
})

function flac(waveform: Tensor, sampleRate: number): Buffer {
  const tags = [['prompt', '{"1": "\\u00e9"}'] as const]
  return Buffer.from(encodeFlac({ waveform, sampleRate }, { batch: 0, tags, checkpoint() {} }))
}

/** 16-bit samples of one channel, halves rounded to even. */
function quantised(samples: Float32Array): number[] {
  return Array.from(samples, (sample) => {
    const scaled = Math.max(-32_768, Math.min(32_767, sample * 32_768))
    const floor = Math.floor(scaled)
    const isUp = scaled - floor > 0.5 || (scaled - floor === 0.5 && floor % 2 !== 0)
    return isUp ? floor + 1 : floor
  })
}

/** Repeatable noise in -1..1. */
function noise(i: number): number {
  const wave = Math.sin(i * 12.9898) * 43_758.5453
  return (wave - Math.floor(wave)) * 2 - 1
}

const SIGNALS: readonly {
  name: string
  channels: number
  length: number
  rate: number
  of(i: number, c: number): number
}[] = [
  { name: 'one sample', channels: 1, length: 1, rate: 44_100, of: () => 0.3 },
  { name: 'silence', channels: 2, length: 5000, rate: 48_000, of: () => 0 },
  {
    name: 'a tone over several blocks',
    channels: 2,
    length: 9001,
    rate: 44_100,
    of: (i, c) => 0.7 * Math.sin(i / 20 + c),
  },
  { name: 'noise', channels: 2, length: 4100, rate: 11_025, of: (i, c) => noise(i * 2 + c) },
  {
    name: 'opposite channels at full scale',
    channels: 2,
    length: 4096,
    rate: 96_000,
    of: (i, c) => (i % 7 < 3 === (c === 0) ? 1 : -1),
  },
  { name: 'values beyond full scale', channels: 1, length: 300, rate: 8000, of: (i) => Math.sin(i / 9) * 3 },
  {
    name: 'six channels at an odd rate',
    channels: 6,
    length: 4500,
    rate: 700_001,
    of: (i, c) => Math.sin((i * (c + 1)) / 90),
  },
  {
    name: 'more frames than one byte counts',
    channels: 1,
    length: 4096 * 131,
    rate: 65_540,
    of: (i) => (i % 4096 === 0 ? 0.5 : 0),
  },
]

for (const { name, channels, length, rate, of } of SIGNALS) {
  test(`FLAC holds ${name} without loss, with valid checksums`, () => {
    const waveform = waveformOf(channels, length, of)
    const file = readFlac(flac(waveform, rate))
    assert.equal(file.sampleRate, rate)
    assert.deepEqual(file.comments, ['prompt={"1": "\\u00e9"}'])
    file.channels.forEach((samples, channel) => {
      assert.deepEqual(samples, quantised(waveform.data.subarray(channel * length, (channel + 1) * length)))
    })
  })
}

test('FLAC makes sound smaller', () => {
  const waveform = waveformOf(2, 44_100, (i, c) => 0.4 * Math.sin(i / 25 + c) + 0.001 * noise(i))
  assert.ok(flac(waveform, 44_100).length < 44_100 * 4 * 0.55)
})

test('what FLAC cannot hold is refused', () => {
  assert.throws(
    () =>
      flac(
        waveformOf(9, 4, () => 0),
        8000,
      ),
    /1 to 8 channels/,
  )
  assert.throws(
    () =>
      flac(
        waveformOf(1, 4, () => 0),
        2_000_000,
      ),
    /1048575 Hz/,
  )
  const tags = [['a=b', 'x'] as const]
  const audio = { waveform: waveformOf(1, 4, () => 0), sampleRate: 8000 }
  assert.throws(() => encodeFlac(audio, { batch: 0, tags, checkpoint() {} }), /extra_pnginfo/)
})

test('ffmpeg reads the same samples from our FLAC', { skip: withoutFfmpeg }, async () => {
  const waveform = waveformOf(2, 9001, (i, c) => 0.7 * Math.sin(i / 20 + c) + 0.1 * noise(i))
  const { waveform: back, sampleRate } = await readAudio(
    { path: await stored(flac(waveform, 44_100)), name: 'x.flac' },
    plainWork,
  )
  assert.equal(sampleRate, 44_100)
  assert.deepEqual(back.shape, [1, 2, 9001])
  assert.deepEqual(
    Array.from(back.data, (sample) => sample * 32_768),
    quantised(waveform.data),
  )
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readVideoFacts } from './video-facts.ts'

const u32 = (...values: readonly number[]) => {
  const bytes = Buffer.alloc(4 * values.length)
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value, 4 * index)
  return bytes
}
const box = (type: string, ...parts: readonly Buffer[]) => {
  const content = Buffer.concat(parts)
  return Buffer.concat([u32(content.length + 8), Buffer.from(type, 'latin1'), content])
}
const track = (handler: string) =>
  box(
    'trak',
    box('tkhd', Buffer.alloc(76), u32(640 << 16, 360 << 16)),
    box(
      'mdia',
      box('mdhd', u32(0, 0, 0, 12_800, 25_600)),
      box('hdlr', u32(0, 0), Buffer.from(handler, 'latin1'), Buffer.alloc(12)),
      box('minf', box('stbl', box('stts', u32(0, 2, 40, 512, 8, 640)))),
    ),
  )
const MOVIE = Buffer.concat([
  box('ftyp', Buffer.from('isom')),
  box('mdat', Buffer.alloc(5000)),
  box('moov', box('mvhd', Buffer.alloc(100)), track('soun'), track('vide')),
])
const read = (bytes: Buffer) => (start: number, length: number) =>
  Promise.resolve(bytes.subarray(start, start + length))

test('the size, length and frames of the picture are read from the tables behind the data', async () => {
  assert.deepEqual(await readVideoFacts(read(MOVIE), MOVIE.length), {
    ...{ width: 640, height: 360, durationSeconds: 2, frameCount: 48, fps: 24 },
  })
})

test('a file that is cut anywhere, or is no movie, gives nothing and never fails', async () => {
  assert.equal(await readVideoFacts(read(Buffer.from('no movie at all')), 15), null)
  for (let length = 0; length < MOVIE.length; length += 7) {
    const cut = MOVIE.subarray(0, length)
    await assert.doesNotReject(readVideoFacts(read(cut), cut.length))
  }
})

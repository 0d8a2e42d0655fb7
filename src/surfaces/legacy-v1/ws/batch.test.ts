import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Batch, type Dialect } from './batch.ts'

const NODE = { nodeId: '3', displayNodeId: '3', parentNodeId: null, classType: 'KSampler' }
const DIALECTS: readonly Dialect[] = ['plain', 'metadata']

function batchWith(bytes: Uint8Array, isResult: boolean): Batch {
  const batch = new Batch()
  batch.addProgress('{"type":"progress"}')
  batch.addPreview('job', { type: 'preview', ...NODE, contentType: 'image/png', bytes, ...(isResult && { isResult }) })
  batch.addText('{"type":"executed"}')
  return batch
}

/** The payloads of frames that follow one another. */
function payloadsOf(bytes: Buffer): Buffer[] {
  if (bytes.length === 0) return []
  const short = bytes[1] as number
  const [at, length] =
    short < 126 ? [2, short] : short === 126 ? [4, bytes.readUInt16BE(2)] : [10, Number(bytes.readBigUInt64BE(2))]
  return [bytes.subarray(at, at + length), ...payloadsOf(bytes.subarray(at + length))]
}

test('a large picture is not copied for its readers, whatever dialect they speak', () => {
  for (const isResult of [false, true]) {
    const bytes = new Uint8Array(8 * 1024 * 1024)
    const batch = batchWith(bytes, isResult)
    for (const dialect of DIALECTS) {
      const { all, allBytes } = batch.encode(dialect, null)
      assert.ok(all.some((piece) => piece.buffer === bytes.buffer))
      assert.ok(allBytes - bytes.length < 1000)
    }
  }
})

test('small frames are one piece, and frames of every size are whole', () => {
  for (const size of [0, 1, 100, 117, 118, 126, 65_000, 65_528, 65_536, 262_144, 1_000_000]) {
    const picture = Buffer.alloc(size, 7)
    const batch = batchWith(picture, false)
    for (const dialect of DIALECTS) {
      const { all, essential, allBytes, previewCount } = batch.encode(dialect, null)
      assert.equal(all.length, size < 262_144 ? 1 : 3, `${size} bytes`)
      assert.equal(essential.length, 1)
      assert.equal(previewCount, 1)
      const bytes = Buffer.concat(all)
      assert.equal(bytes.length, allBytes)
      const payloads = payloadsOf(bytes)
      assert.equal(payloads.length, 3)
      const shown = payloads[dialect === 'plain' ? 1 : 0] as Buffer
      const headBytes = dialect === 'plain' ? 8 : 8 + shown.readUInt32BE(4)
      assert.ok(shown.subarray(headBytes).equals(picture), `${size} bytes`)
    }
  }
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PNG_SIGNATURE, readChunks, writeChunk, writeChunks } from './png-chunks.ts'

const text = { type: 'tEXt', body: Buffer.from('key\0value') }
const end = { type: 'IEND', body: new Uint8Array(0) }

test('chunks that are written are read back, with the bytes they take in the file', () => {
  const file = writeChunks([text, end])
  const found = readChunks(file)
  assert.deepEqual(
    found.map(({ type, body }) => [type, Buffer.from(body).toString('latin1')]),
    [
      ['tEXt', 'key\0value'],
      ['IEND', ''],
    ],
  )
  assert.deepEqual(Buffer.from(found[0].whole), writeChunk(text))
  // The checksum of an empty IEND is the same in every PNG.
  assert.equal(writeChunk(end).toString('hex'), '0000000049454e44ae426082')
})

test('a truncated chunk is left out, and a file that is no PNG has no chunks', () => {
  const file = writeChunks([text, end])
  assert.deepEqual(
    readChunks(file.subarray(0, -1)).map(({ type }) => type),
    ['tEXt'],
  )
  assert.deepEqual(readChunks(file.subarray(1)), [])
  assert.deepEqual(readChunks(PNG_SIGNATURE), [])
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { joinSmall, toPreviewFrame } from './sse.ts'

test('the frame of a preview holds its picture, whatever its size', () => {
  for (const size of [0, 1, 2, 3, 4, 49_151, 49_152, 49_153, 98_304, 98_306]) {
    // A view into a larger buffer, as pictures from a socket are.
    const bytes = new Uint8Array(size + 9).map((_, at) => at % 251).subarray(5, 5 + size)
    const data = { node_id: 'a"\n', content_type: 'image/png', data_base64: Buffer.from(bytes).toString('base64') }
    const frame = toPreviewFrame({ nodeId: 'a"\n', contentType: 'image/png', bytes })
    assert.equal(frame.toString(), `event: preview\ndata: ${JSON.stringify(data)}\n\n`, `${size} bytes`)
  }
})

test('frames are joined unless they are large, in their order', () => {
  const large = Buffer.alloc(1_000_000, 'l')
  const pieces = joinSmall([Buffer.from('a'), Buffer.from('b'), large, Buffer.from('c'), large])
  assert.deepEqual(
    pieces.map((piece) => (piece === large ? 'large' : piece.toString())),
    ['ab', 'large', 'c', 'large'],
  )
  assert.deepEqual(joinSmall([]), [])
})

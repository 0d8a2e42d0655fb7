import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createEventParser, readEvents, type StreamEvent } from './read-event-stream.ts'

const STREAM =
  ': keepalive\n\nevent: status\ndata: {"status":"queued"}\n\nevent: progress\r\ndata: {"value":\r\ndata: 0.5}\r\n\r\n' +
  'data: {"nameless":1}\n\nevent: empty\n\nevent: bad\ndata: {\n\nevent: status\ndata:{"status":"succeeded"}\n\n'
const EVENTS: StreamEvent[] = [
  { name: 'status', data: { status: 'queued' } },
  { name: 'progress', data: { value: 0.5 } },
  { name: 'status', data: { status: 'succeeded' } },
]

test('events are whole however the text is split', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(STREAM.length), { maxLength: 20 }), (cuts) => {
      const parse = createEventParser()
      const points = [0, ...cuts.sort((a, b) => a - b), STREAM.length]
      const events = points.slice(1).flatMap((end, index) => parse(STREAM.slice(points[index], end)))
      assert.deepEqual(events, EVENTS)
    }),
  )
})

test('reading a silent stream fails', async () => {
  const silent = new ReadableStream<Uint8Array>({})
  await assert.rejects(readEvents(silent, 5).next(), /no sign of life/)
})

test('a character that is split between two chunks survives', async () => {
  const bytes = new TextEncoder().encode('event: x\ndata: "héllo"\n\n')
  const body = ReadableStream.from([...bytes].map((byte) => Uint8Array.of(byte)))
  assert.deepEqual((await readEvents(body, 1000).next()).value, { name: 'x', data: 'héllo' })
})

/** What waits for a slow reader, what it loses, and in which order the rest leaves. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OUTBOX_BOUNDS, Outbox, type OutboxBounds, readSourceFrame } from '../../../../src/adapters/bus/live/outbox.ts'
import { ToldNotice } from '../../../../src/adapters/bus/live/told-notice.ts'
import type { LiveEvent } from '../../../../src/domain/events/live-event.ts'

const NODE = { nodeId: '1', classType: 'C', displayNodeId: '1', parentNodeId: null }

function openOutbox(bounds: Partial<OutboxBounds> = {}) {
  const sent: Uint8Array[] = []
  const counts = { dropped: 0, overflows: 0 }
  let seq = 0
  const clock = { ms: 0 }
  const outbox = new Outbox({
    bounds: { ...OUTBOX_BOUNDS, ...bounds },
    now: () => clock.ms,
    send: (frame) => sent.push(frame),
    onOverflow: () => counts.overflows++,
    onPreviewDropped: () => counts.dropped++,
  })
  function say(event: LiveEvent, jobId = 'job'): void {
    outbox.push(new ToldNotice(++seq, clock.ms, { kind: 'live', notice: { jobId, accountId: 'ada', event } }))
  }
  return {
    outbox,
    sent,
    counts,
    clock,
    text: (text: string, jobId?: string) => say({ type: 'node_text', ...NODE, text }, jobId),
    step: (value: number) => say({ type: 'node_progress', ...NODE, value, max: 9 }),
    preview: (fill: number, size = 10) =>
      say({ type: 'preview', ...NODE, contentType: 'image/png', bytes: new Uint8Array(size).fill(fill) }),
    picture: (size: number, jobId?: string) =>
      say(
        { type: 'preview', ...NODE, contentType: 'image/png', bytes: new Uint8Array(size).fill(9), isResult: true },
        jobId,
      ),
    /** The reader has taken everything that was sent. */
    takeAll: () => outbox.taken(sent.reduce((sum, frame) => sum + frame.byteLength, 0)),
    /** What was sent, as words. */
    words: () =>
      sent.map((bytes) => {
        const frame = readSourceFrame(bytes)
        if (frame?.kind !== 'told') return frame?.kind ?? 'nonsense'
        const { notice } = frame
        if (notice.bytes !== null) return `preview ${notice.bytes[0]}`
        return /"(?:text|value)":"?([^",}]*)/.exec(notice.line)?.[1] ?? notice.line
      }),
  }
}

test('a reader that takes what it is sent gets everything in order', () => {
  const { text, step, preview, clock, words } = openOutbox()
  text('a')
  step(1)
  preview(1)
  clock.ms = 100
  preview(2)
  step(2)
  text('b')
  assert.deepEqual(words(), ['a', '1', 'preview 1', 'preview 2', '2', 'b'])
})

test('previews come at a pace; the newest is sent when its time has come, or before whatever ends something', () => {
  const { text, step, preview, words, counts, outbox } = openOutbox({ previewBurst: 2 })
  for (const fill of [0, 1, 2, 3]) preview(fill)
  step(4)
  text('the node has ended')
  assert.deepEqual(words(), ['preview 0', 'preview 1', '4', 'preview 3', 'the node has ended'])
  assert.equal(counts.dropped, 1)
  outbox.close()
})

test('a reader that takes nothing is sent a window, keeps all lines, and of steps and previews the newest', () => {
  const { text, step, preview, words, takeAll, clock } = openOutbox({ windowBytes: 1 })
  text('a')
  for (let value = 1; value <= 50; value++) {
    clock.ms += 100
    step(value)
    preview(value)
  }
  text('b')
  assert.deepEqual(words(), ['a'])
  for (let turn = 0; turn < 5; turn++) takeAll()
  assert.deepEqual(words(), ['a', '50', 'preview 50', 'b'])
})

test('what does not fit goes: previews first, and when that is not enough the reader', () => {
  const { text, preview, words, counts, takeAll, clock } = openOutbox({ windowBytes: 1, maxWaitingBytes: 10_000 })
  text('sent')
  preview(1, 6000)
  clock.ms = 100
  for (let index = 0; index < 4; index++) text(`${index}`)
  assert.deepEqual([counts.dropped, counts.overflows], [1, 0])
  for (let index = 0; index < 10; index++) text('x'.repeat(2000))
  assert.equal(counts.overflows, 1)
  takeAll()
  assert.deepEqual(words(), ['sent'], 'a link that was given up sends nothing more')
})

test('a large picture goes in pieces between which other jobs are heard, but nothing of its own job', () => {
  const { picture, text, words, takeAll, sent } = openOutbox({ windowBytes: 1, pieceBytes: 1000 })
  text('before')
  picture(5000)
  text('after')
  text('another', 'other')
  for (let turn = 0; turn < 20; turn++) takeAll()
  assert.deepEqual(words().slice(0, 4), ['before', 'large', 'piece', 'another'])
  assert.deepEqual(words().at(-1), 'after')
  assert.equal(words().filter((word) => word === 'piece').length, 6)
  assert.ok(sent.every((frame) => frame.byteLength <= 1005))
})

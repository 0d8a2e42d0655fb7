import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NoticeBatch } from '../../../src/adapters/bus/wire-bus.ts'
import { encodeNotice, type Notice } from '../../../src/domain/events/notice-lines.ts'

const MAX_PAYLOAD_BYTES = 7800

function add(batch: NoticeBatch, notice: Notice): void {
  const encoded = encodeNotice(notice)
  assert.ok(encoded !== null)
  batch.add(encoded, notice)
}

function changed(version: number, jobId = 'job', move?: 'queued' | 'ended'): Notice {
  return { kind: 'changed', notice: { jobId, accountId: 'ada', version, ...(move && { move }) } }
}

test('lines leave together and in order; equal ones are one, and the newest version of a job is enough', () => {
  const batch = new NoticeBatch(MAX_PAYLOAD_BYTES)
  add(batch, { kind: 'work', pool: 'demo' })
  add(batch, changed(1))
  add(batch, changed(2, 'other', 'queued'))
  add(batch, { kind: 'work', pool: 'demo' })
  add(batch, changed(3))
  add(batch, { kind: 'directory', notice: { directory: 'keys', version: 4 } })
  add(batch, { kind: 'directory', notice: { directory: 'keys', version: 5 } })
  assert.deepEqual(batch.take(), ['w demo\nc other ada 2 queued\nc job ada 3\nk 5'])
  assert.deepEqual([batch.isEmpty, batch.take()], [true, []])
})

test('more lines than fit are sent in several texts, none too long', () => {
  const batch = new NoticeBatch(MAX_PAYLOAD_BYTES)
  for (let index = 0; index < 1000; index++) add(batch, changed(index, `job-${index}`, 'ended'))
  const payloads = batch.take()
  assert.ok(payloads.every((payload) => Buffer.byteLength(payload) <= MAX_PAYLOAD_BYTES))
  assert.equal(payloads.join('\n').split('\n').length, 1000)
})

test('what does not fit is left out, and that is told', () => {
  const batch = new NoticeBatch(MAX_PAYLOAD_BYTES)
  for (let index = 0; index < 5000; index++) add(batch, changed(index))
  assert.deepEqual([batch.hasLost, batch.take().length], [false, 1])
  for (let index = 0; index < 50_000; index++) add(batch, changed(index, `job-${index}`, 'queued'))
  assert.equal(batch.hasLost, true)
  batch.take()
  assert.equal(batch.hasLost, false)
  const long = new NoticeBatch(10)
  add(long, { kind: 'work', pool: 'a long name' })
  assert.deepEqual([long.hasLost, long.take()], [true, []])
})

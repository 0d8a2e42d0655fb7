import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_PAYLOAD_BYTES, NoticeBatch } from '../../../src/adapters/bus/notice-batch.ts'
import { encodeNotice, type Notice } from '../../../src/domain/events/notice-lines.ts'

const NODE = { nodeId: '1', classType: 'C', displayNodeId: '1', parentNodeId: null }

function add(batch: NoticeBatch, notice: Notice): void {
  const encoded = encodeNotice(notice)
  assert.ok(encoded !== null)
  batch.add(encoded, notice)
}

function changed(version: number, jobId = 'job', move?: 'queued' | 'ended'): Notice {
  return { kind: 'changed', notice: { jobId, accountId: 'ada', version, ...(move && { move }) } }
}

function live(event: Extract<Notice, { kind: 'live' }>['notice']['event']): Notice {
  return { kind: 'live', notice: { jobId: 'job', accountId: 'ada', event } }
}

test('lines leave together and in order; equal ones are one, and the newest version of a job is enough', () => {
  const batch = new NoticeBatch()
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

test('a later step of a node replaces an earlier one; other events are all kept', () => {
  const batch = new NoticeBatch()
  const step = (value: number) => live({ type: 'node_progress', ...NODE, value, max: 9 })
  for (const value of [1, 2, 3]) add(batch, step(value))
  add(batch, live({ type: 'node_finished', ...NODE }))
  const [payload] = batch.take()
  assert.equal(payload.split('\n').length, 2)
  assert.match(payload, /"value":3/)
})

test('more lines than fit are sent in several texts, none too long', () => {
  const batch = new NoticeBatch()
  for (let index = 0; index < 1000; index++) add(batch, changed(index, `job-${index}`, 'ended'))
  const payloads = batch.take()
  assert.ok(payloads.every((payload) => Buffer.byteLength(payload) <= MAX_PAYLOAD_BYTES))
  assert.equal(payloads.join('\n').split('\n').length, 1000)
})

test('what only says how far something is may be left out; what else is lost is told', () => {
  const batch = new NoticeBatch()
  for (let index = 0; index < 5000; index++) add(batch, changed(index, `job-${index}`))
  assert.equal(batch.hasLost, false)
  assert.ok(batch.take().join('').length < 40_000)
  add(batch, live({ type: 'node_text', ...NODE, text: 'x'.repeat(9000) }))
  assert.equal(batch.hasLost, false, 'a long text is for those who are nearer')
  for (let index = 0; index < 50_000; index++) add(batch, changed(index, `job-${index}`, 'queued'))
  assert.equal(batch.hasLost, true)
  batch.take()
  assert.equal(batch.hasLost, false)
})

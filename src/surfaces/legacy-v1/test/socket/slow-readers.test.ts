/** Readers that do not keep up: they lose previews first, then their socket, and slow no other reader down. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { type BinaryFrame, type Frame, isText } from '../../../../../test/support/clients/test-socket.ts'
import { startSockets, type TestSockets, toRef } from './start-sockets.ts'

const JOB = '5c6f54d3-c688-4185-a929-0a18c0b13fd1'
const NODE = toRef('3')
const PICTURE_BYTES = 65_536

function begin(rig: TestSockets): void {
  rig.move(JOB, 'queued')
  rig.move(JOB, 'taken')
  rig.say(JOB, { type: 'started', nodesTotal: 1 })
  rig.say(JOB, { type: 'node_started', ...NODE })
}

function step(rig: TestSockets, value: number, max: number): void {
  const bytes = Buffer.alloc(PICTURE_BYTES)
  bytes.writeUInt32BE(value)
  rig.say(JOB, { type: 'node_progress', ...NODE, value, max })
  rig.say(JOB, { type: 'preview', ...NODE, contentType: 'image/jpeg', bytes })
}

const stepOf = (frame: Frame) => (isText(frame, 'progress') ? Number(frame.data['value']) : null)
const pictureOf = (frame: Frame) => ('binary' in frame ? (frame as BinaryFrame).binary.readUInt32BE(8) : null)
const only = (values: readonly (number | null)[]) => values.filter((value) => value !== null)

test('a stalled reader is dropped; every other one gets every step and every preview in order', async () => {
  await using rig = await startSockets({ sockets: { limits: { previewBytes: 32_768, backlogBytes: 131_072 } } })
  const fast = await Promise.all(Array.from({ length: 12 }, () => rig.connect()))
  const stalled = await rig.connect()
  await stalled.untilCount(1)
  stalled.ws.pause()
  begin(rig)
  let steps = 0
  // The kernel buffers some megabytes before a stalled reader can be noticed.
  while (rig.sockets.stats().readersGivenUp === 0 && steps < 2000) {
    steps++
    step(rig, steps, 10_000)
    await Promise.all(fast.map((socket) => socket.until((frame) => pictureOf(frame) === steps)))
    if (rig.sockets.stats().previewsDropped > 0) rig.ticker.advance(100)
  }
  const expected = Array.from({ length: steps }, (_, index) => index + 1)
  for (const { frames } of fast) {
    assert.deepEqual(only(frames.map(stepOf)), expected)
    assert.deepEqual(only(frames.map(pictureOf)), expected)
  }
  assert.equal(rig.sockets.stats().readersGivenUp, 1)
  assert.ok(rig.sockets.stats().previewsDropped > 0)
  stalled.ws.terminate()
})

test('a reader that is behind for a while loses previews and nothing else', async () => {
  await using rig = await startSockets({ sockets: { limits: { previewBytes: 0, backlogBytes: 67_108_864 } } })
  const slow = await rig.connect()
  await slow.untilCount(1)
  slow.ws.pause()
  begin(rig)
  let steps = 0
  while (rig.sockets.stats().previewsDropped < 3 && steps < 2000) {
    steps++
    step(rig, steps, 10_000)
    await turn()
  }
  slow.ws.resume()
  await slow.until((frame) => stepOf(frame) === steps)
  assert.deepEqual(
    only(slow.frames.map(stepOf)),
    Array.from({ length: steps }, (_, index) => index + 1),
  )
  const pictures = only(slow.frames.map(pictureOf))
  assert.equal(pictures.length, steps - rig.sockets.stats().previewsDropped)
  assert.deepEqual(
    pictures,
    pictures.toSorted((a, b) => a - b),
  )
  assert.equal(rig.sockets.stats().readersGivenUp, 0)
})

test('pictures that are results all arrive, however late they are read', async () => {
  await using rig = await startSockets({ sockets: { limits: { previewBytes: 1024, backlogBytes: 65_536 } } })
  const slow = await rig.connect()
  await slow.untilCount(1)
  slow.ws.pause()
  begin(rig)
  for (let index = 0; index < 8; index++) {
    const bytes = Buffer.alloc(4_194_304)
    bytes.writeUInt32BE(index)
    rig.say(JOB, { type: 'node_progress', ...NODE, value: index, max: 8 })
    rig.say(JOB, { type: 'preview', ...NODE, contentType: 'image/png', bytes, isResult: true })
    await turn()
  }
  slow.ws.resume()
  await slow.until((frame) => pictureOf(frame) === 7)
  assert.deepEqual(only(slow.frames.map(pictureOf)), [0, 1, 2, 3, 4, 5, 6, 7])
  assert.deepEqual(only(slow.frames.map(stepOf)), [0, 1, 2, 3, 4, 5, 6, 7])
})

test('a client that sends pings and never reads harms no other client', async () => {
  await using rig = await startSockets({ sockets: { limits: { previewBytes: 4096 } } })
  const rude = await rig.connect()
  const polite = await rig.connect()
  await rude.untilCount(1)
  rude.ws.pause()
  for (let round = 0; round < 200; round++) {
    for (let index = 0; index < 500; index++) rude.ws.ping(Buffer.alloc(120))
    await turn()
  }
  begin(rig)
  await polite.until((frame) => isText(frame, 'executing'))
  rude.ws.terminate()
})

test('the messages about a graph do not grow with the square of its nodes', async () => {
  await using rig = await startSockets()
  const socket = await rig.connect()
  rig.say(JOB, { type: 'started', nodesTotal: 5000 })
  for (let index = 0; index < 5000; index++) {
    rig.say(JOB, { type: 'node_started', ...toRef(String(index)) })
    rig.say(JOB, { type: 'node_finished', ...toRef(String(index)) })
  }
  rig.say(JOB, { type: 'succeeded' })
  await socket.until((frame) => isText(frame, 'execution_success'))
  const states = socket.frames.filter((frame) => isText(frame, 'progress_state'))
  assert.ok(states.length < 250, `${states.length} states`)
  // Each node was announced, and the last state is complete.
  assert.equal(socket.frames.filter((frame) => isText(frame, 'executing') && frame.data['node'] !== null).length, 5000)
  const last = states.at(-1)
  assert.ok(last && 'data' in last)
  assert.equal(Object.keys(last.data['nodes'] as object).length, 5000)
})

/** A job that one process takes and runs, heard on the sockets of another process over a shared bus. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { silentLog } from '../../../../../lib/log.ts'
import { createLoopback } from '../../../../../test/support/bus/loopback-medium.ts'
import { isText } from '../../../../../test/support/clients/test-socket.ts'
import { waitUntil } from '../../../../../test/support/wait-until.ts'
import { createWireBus } from '../../../../adapters/bus/wire-bus.ts'
import type { Job } from '../../../../domain/jobs/job.ts'
import { isEnd, JOB, outline, SAMPLER, startSockets } from './start-sockets.ts'

const ENDED: Job = {
  ...{ id: JOB, accountId: 'ada', pool: 'default', status: 'succeeded', priority: 0, metadata: {} },
  ...{ createdAt: new Date(0), startedAt: new Date(1), completedAt: new Date(2), expiresAt: new Date(1e15) },
  ...{ queuePosition: null, progress: null, outputs: [], error: null, outputsReused: false, outputsReplaced: 0 },
  ...{ attempt: 1, version: 9 },
}

async function startTwo(options: { readonly now?: () => number } = {}) {
  const medium = createLoopback(options)
  const ends = [medium.join(), medium.join()]
  const join = (end: (typeof ends)[number]) =>
    createWireBus({ medium: end, links: end.links, log: silentLog, ...options })
  const sockets = { sockets: { isPerClient: true } }
  const [one, other] = [
    await startSockets({ ...sockets, bus: join(ends[0]) }),
    await startSockets({ ...sockets, bus: join(ends[1]) }),
  ]
  return {
    one,
    other,
    medium,
    otherEnd: ends[1],
    async [Symbol.asyncDispose]() {
      await Promise.all([one.server.close(), other.server.close()])
      await medium[Symbol.asyncDispose]()
    },
  }
}

test('a run is told on the sockets of its client in every process, and to no other client of the account', async () => {
  await using rigs = await startTwo()
  const { one, other } = rigs
  // The process that took the prompt remembers its client; the other one finds it in the job's record.
  one.jobClients.remember(JOB, 'a')
  other.clients.set(JOB, 'a')
  const [here, there, stranger] = [
    await one.connect('token=ada&clientId=a'),
    await other.connect('token=ada&clientId=a'),
    await other.connect('token=ada&clientId=b'),
  ]
  for (const move of ['queued', 'taken'] as const) one.move(JOB, move)
  for (const event of SAMPLER) one.say(JOB, event)
  one.move(JOB, 'ended')
  one.say(JOB, { type: 'succeeded' })
  await Promise.all([here, there].map((socket) => socket.until(isEnd)))
  const isRun = (word: string) => !word.startsWith('status')
  assert.deepEqual(outline(there.frames).filter(isRun), outline(here.frames).filter(isRun))
  assert.deepEqual(outline(stranger.frames).filter(isRun), [])
  assert.equal(outline(there.frames).at(-2), 'status 0')
})

test('a process without a socket of the account keeps nothing of runs elsewhere, and tells a run from where it is joined', async () => {
  // Nothing is on its way for any time: what is told before somebody listens is never taken for news.
  let nowMs = 0
  await using rigs = await startTwo({ now: () => nowMs })
  const { one, other } = rigs
  one.say(JOB, { type: 'started', nodesTotal: 1 })
  one.say(JOB, SAMPLER[2])
  nowMs = 1
  const [here, there] = [await one.connect('token=ada&clientId='), await other.connect('token=ada&clientId=')]
  one.say(JOB, SAMPLER[3])
  one.move(JOB, 'ended')
  one.say(JOB, { type: 'succeeded' })
  await Promise.all([here, there].map((socket) => socket.until(isEnd)))
  assert.ok(outline(there.frames).includes('progress'))
  assert.ok(!outline(there.frames).includes('execution_start'))
})

test('the end of a run that was lost on the way is told once the gap is known, and counts are read from the store', async () => {
  await using rigs = await startTwo()
  const { one, other, medium, otherEnd } = rigs
  const there = await other.connect('token=ada&clientId=')
  for (const move of ['queued', 'taken'] as const) one.move(JOB, move)
  for (const event of SAMPLER) one.say(JOB, event)
  await there.until((frame) => isText(frame, 'progress'))
  await medium.settle()
  otherEnd.cut()
  one.move(JOB, 'ended')
  one.say(JOB, { type: 'succeeded' })
  other.jobs.set(JOB, { ...ENDED, id: JOB })
  otherEnd.mend()
  await there.until(isEnd)
  // Another job was queued meanwhile and nobody heard of it.
  other.waiting.set('ada', 1)
  other.ticker.advance(5000)
  await there.until((frame) => isText(frame, 'status') && outline([frame])[0] === 'status 1')
})

test('a run that came and ended while nothing was heard is told once the gap is known, and one from before the socket is not', async () => {
  await using rigs = await startTwo()
  const { other, medium, otherEnd } = rigs
  const there = await other.connect('token=ada&clientId=')
  await medium.settle()
  otherEnd.cut()
  const old = '5c6f54d3-c688-4185-a929-0a18c0b13fd2'
  other.jobs.set(old, { ...ENDED, id: old })
  other.jobs.set(JOB, { ...ENDED, id: JOB, createdAt: new Date(1_700_000_000_001) })
  otherEnd.mend()
  const ended = await there.until(isEnd)
  assert.equal('data' in ended && ended.data['prompt_id'], JOB)
})

for (const [what, hears] of [
  ['whose moves were heard', true],
  ['that was taken before anybody here listened', false],
] as const) {
  test(`the end of a run ${what} is told although its worker died before it could say so, and told once`, async () => {
    await using rigs = await startTwo()
    const { one, other, medium } = rigs
    if (!hears) for (const event of SAMPLER.slice(0, 3)) one.say(JOB, event)
    const there = await other.connect('token=ada&clientId=')
    if (hears) for (const move of ['queued', 'taken'] as const) one.move(JOB, move)
    for (const event of SAMPLER.slice(3)) one.say(JOB, event)
    await there.until((frame) => isText(frame, 'progress'))
    await medium.settle()
    other.jobs.set(JOB, { ...ENDED, id: JOB })
    other.ticker.advance(5000)
    await there.until(isEnd)
    // The notice was late, and not lost.
    one.move(JOB, 'ended')
    one.say(JOB, { type: 'succeeded' })
    one.say('5c6f54d3-c688-4185-a929-0a18c0b13fd2', { type: 'started', nodesTotal: 1 })
    await there.until((frame) => isText(frame, 'execution_start') && frame.data['prompt_id'] !== JOB)
    assert.equal(there.frames.filter(isEnd).length, 1)
  })
}

test('the end of a run is told that was silent since somebody here listened, and whose end nobody told', async () => {
  await using rigs = await startTwo()
  const { other } = rigs
  other.jobs.set(JOB, { ...ENDED, id: JOB, status: 'running' })
  const there = await other.connect('token=ada&clientId=')
  // The list of what runs has come.
  await turn()
  other.jobs.set(JOB, { ...ENDED, id: JOB })
  other.ticker.advance(5000)
  await there.until(isEnd)
})

test('a run that ended before anybody here listened is not told to who connects right after', async () => {
  await using rigs = await startTwo()
  const { one, other, medium } = rigs
  const next = '5c6f54d3-c688-4185-a929-0a18c0b13fd2'
  for (const id of [JOB, next]) other.jobs.set(id, { ...ENDED, id })
  one.move(JOB, 'ended')
  await medium.settle()
  const there = await other.connect('token=ada&clientId=')
  one.move(next, 'ended')
  const first = await there.until(isEnd)
  assert.equal('data' in first && first.data['prompt_id'], next)
})

test('events that come late over a slow link come before the end of their run, which comes once', async () => {
  await using rigs = await startTwo()
  const { one, other, medium, otherEnd } = rigs
  const there = await other.connect('token=ada&clientId=')
  for (const move of ['queued', 'taken'] as const) one.move(JOB, move)
  for (const event of SAMPLER.slice(0, 3)) one.say(JOB, event)
  await there.until((frame) => isText(frame, 'executing'))
  await medium.settle()
  otherEnd.lag()
  for (const event of SAMPLER.slice(3)) one.say(JOB, event)
  other.jobs.set(JOB, { ...ENDED, id: JOB })
  one.move(JOB, 'ended')
  one.say(JOB, { type: 'succeeded' })
  await medium.settle()
  otherEnd.catchUp()
  await there.until(isEnd)
  const told = outline(there.frames)
  assert.ok(told.includes('progress'), told.join('\n'))
  assert.ok(told.indexOf('progress') < told.indexOf('execution_success'), told.join('\n'))
})

test('what comes after the end of a run was told from its record is told to nobody, and the queue is not counted down twice', async () => {
  await using rigs = await startTwo()
  const { one, other, medium } = rigs
  other.waiting.set('ada', 1)
  const there = await other.connect('token=ada&clientId=')
  for (const move of ['queued', 'taken'] as const) one.move(JOB, move)
  for (const event of SAMPLER.slice(0, 3)) one.say(JOB, event)
  await there.until((frame) => isText(frame, 'executing'))
  other.jobs.set(JOB, { ...ENDED, id: JOB })
  one.move(JOB, 'ended')
  await there.until(isEnd)
  const before = there.frames.length
  for (const event of SAMPLER.slice(3)) one.say(JOB, event)
  one.say(JOB, { type: 'succeeded' })
  await medium.settle()
  one.move('5c6f54d3-c688-4185-a929-0a18c0b13fd2', 'queued')
  await waitUntil(() => there.frames.length > before)
  assert.deepEqual(outline(there.frames.slice(before)), ['status 2'])
})

test('a process alone sets no timer for ends that others might not tell', async () => {
  await using alone = await startSockets()
  await using rigs = await startTwo()
  await alone.connect('token=ada')
  await rigs.other.connect('token=ada')
  assert.equal(rigs.other.ticker.count() - alone.ticker.count(), 1)
})

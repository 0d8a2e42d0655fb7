/** Who hears of a run where clients are told apart by their ids. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isText, type TestSocket, type TextFrame } from '../../../../../test/support/clients/test-socket.ts'
import { isEnd, JOB, outline, runSampler, SAMPLER, startSockets } from './start-sockets.ts'

/** Whoever has answered a ping has been sent everything that was said before it. */
async function settle({ ws }: TestSocket): Promise<void> {
  ws.ping()
  await new Promise((resolve) => ws.once('pong', resolve))
}

test('per client: a run is told to the sockets of the client that submitted it, the queue to everybody', async () => {
  await using rig = await startSockets({ sockets: { isPerClient: true } })
  rig.clients.set(JOB, 'a')
  const [first, second] = await Promise.all([1, 2].map(() => rig.connect('token=ada&clientId=a')))
  const others = await Promise.all(['clientId=b', 'clientId=', ''].map((id) => rig.connect(`token=ada&${id}`)))
  // Submitted before this process began: only the store knows whose it is.
  rig.jobClients.forget(JOB)
  rig.move(JOB, 'taken')
  for (const event of SAMPLER) rig.say(JOB, event)
  rig.move(JOB, 'ended')
  rig.say(JOB, { type: 'succeeded' })
  await Promise.all([first, second].map((socket) => socket.until(isEnd)))
  assert.deepEqual(outline(first.frames), [
    ...['status 0', 'status 0', 'execution_start', 'execution_cached', 'progress_state', 'executing 3'],
    ...['progress_state', 'progress', 'binary 1', 'binary 3', 'progress_state'],
    ...['execution_success', 'status 0', 'executing null'],
  ])
  assert.equal(JSON.stringify(second.frames), JSON.stringify(first.frames))
  for (const other of others) {
    await settle(other)
    assert.deepEqual(outline(other.frames), ['status 0', 'status 0', 'status 0'])
  }
})

test('per client: a run that names nobody is told to everybody', async () => {
  await using rig = await startSockets({ sockets: { isPerClient: true } })
  const sockets = await Promise.all(['clientId=a', 'clientId=b', ''].map((id) => rig.connect(`token=ada&${id}`)))
  runSampler(rig)
  await Promise.all(sockets.map((socket) => socket.until(isEnd)))
  for (const { frames } of sockets) assert.equal(outline(frames).filter((kind) => kind.startsWith('binary')).length, 2)
})

test('per client: what several runs say at once goes to each its own, in its own dialect', async () => {
  await using rig = await startSockets({ sockets: { isPerClient: true } })
  const jobs = ['a', 'b', 'c'].map((client) => ({ client, job: JOB.replace('5c', `${client}c`) }))
  const sockets = await Promise.all(jobs.map(({ client }) => rig.connect(`token=ada&clientId=${client}`)))
  sockets[1].ws.send('{"type":"feature_flags","data":{"supports_preview_metadata":true}}')
  await sockets[1].until((frame) => isText(frame, 'feature_flags'))
  for (const { client, job } of jobs) rig.jobClients.remember(job, client)
  // Interleaved, event by event, within one turn of the loop.
  for (const event of SAMPLER) for (const { job } of jobs) rig.say(job, event)
  for (const { job } of jobs) rig.move(job, 'ended')
  for (const { job } of jobs) rig.say(job, { type: 'succeeded' })
  await Promise.all(sockets.map((socket) => socket.until(isEnd)))
  for (const [index, { frames }] of sockets.entries()) {
    const { job } = jobs[index]
    const told = frames.filter((frame): frame is TextFrame => 'type' in frame && frame.data['prompt_id'] !== undefined)
    assert.deepEqual([...new Set(told.map(({ data }) => data['prompt_id']))], [job])
    const kinds = outline(frames)
    assert.equal(kinds.filter((kind) => kind.startsWith('binary')).length, 2)
    if (index === 1) assert.equal(kinds[kinds.indexOf('binary 4') + 1], 'progress')
    else assert.equal(kinds[kinds.indexOf('binary 1') - 1], 'progress')
  }
})

test('a job that is given back is announced with its id, to whoever hears of it', async () => {
  await using rig = await startSockets({ sockets: { isPerClient: true } })
  const [mine, other] = await Promise.all(['a', 'b'].map((id) => rig.connect(`token=ada&clientId=${id}`)))
  rig.jobClients.remember(JOB, 'a')
  rig.move(JOB, 'queued')
  rig.move(JOB, 'taken')
  rig.move(JOB, 'returned')
  const { data } = (await mine.until((frame) => isText(frame, 'notification'))) as TextFrame
  assert.equal(data['prompt_id'], JOB)
  assert.equal(typeof data['value'], 'string')
  await settle(other)
  assert.deepEqual(outline(other.frames), ['status 0', 'status 1', 'status 1', 'status 1'])
})

test('one at a time: of two runs at once the client hears the second after the end of the first, and nothing is lost', async () => {
  await using rig = await startSockets({ sockets: { isPerClient: true, isOneAtATime: true } })
  const [one, two] = ['a', 'b'].map((letter) => JOB.replace('5c', `${letter}c`))
  for (const job of [one, two]) rig.jobClients.remember(job, 'editor')
  const editor = await rig.connect('token=ada&clientId=editor')
  for (const event of SAMPLER) for (const job of [one, two]) rig.say(job, event)
  rig.move(two, 'ended')
  rig.say(two, { type: 'succeeded' })
  rig.move(one, 'ended')
  rig.say(one, { type: 'succeeded' })
  await editor.until((frame) => isEnd(frame) && 'data' in frame && frame.data['prompt_id'] === two)
  const told = editor.frames.flatMap((frame) => ('type' in frame ? [frame.data['prompt_id']] : []))
  assert.equal(told.lastIndexOf(one) < told.indexOf(two), true)
  const kinds = outline(editor.frames)
  assert.deepEqual(
    ['execution_start', 'executing 3', 'execution_success', 'executing null', 'binary 1'].map(
      (kind) => kinds.filter((each) => each === kind).length,
    ),
    [2, 2, 2, 2, 1],
  )
})

test('one at a time: a run that went back to the queue gives its turn away, and a run of nobody is told to nobody', async () => {
  await using rig = await startSockets({ sockets: { isPerClient: true, isOneAtATime: true } })
  const [one, two, other] = ['a', 'b', 'c'].map((letter) => JOB.replace('5c', `${letter}c`))
  for (const job of [one, two]) rig.jobClients.remember(job, 'editor')
  rig.jobClients.remember(other, null)
  const editor = await rig.connect('token=ada&clientId=editor')
  for (const job of [one, two, other]) rig.say(job, { type: 'started', nodesTotal: 1 })
  rig.move(one, 'returned')
  await editor.until((frame) => isText(frame, 'execution_start') && frame.data['prompt_id'] === two)
  rig.move(other, 'ended')
  rig.say(other, { type: 'succeeded' })
  await settle(editor)
  assert.equal(
    editor.frames.some((frame) => 'type' in frame && frame.data['prompt_id'] === other),
    false,
  )
})

test('a client that asked for it hears what runs print, until it asks for it no more', async () => {
  await using rig = await startSockets()
  const [reader, other] = await Promise.all(['a', 'b'].map((id) => rig.connect(`token=ada&clientId=${id}`)))
  rig.logReaders.set('ada', 'a', true)
  rig.say(JOB, { type: 'log', text: 'half a line, ' })
  rig.say(JOB, { type: 'log', text: 'and the rest\n' })
  const frame = (await reader.until((each) => isText(each, 'logs'))) as TextFrame
  const entries = frame.data['entries'] as readonly { readonly m: string }[]
  assert.equal(entries.map(({ m }) => m).join(''), 'half a line, and the rest\n')
  await settle(other)
  assert.equal(
    other.frames.some((each) => isText(each, 'logs')),
    false,
  )
})

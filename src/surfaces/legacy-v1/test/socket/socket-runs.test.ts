/** The messages of a run on the socket: their order, their forms, and how runs end. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type BinaryFrame, isText, type TextFrame } from '../../../../../test/support/clients/test-socket.ts'
import { isEnd, JOB, outline, runSampler, startSockets, TEST_FEATURES, toRef } from './start-sockets.ts'

test('a run in its order: previews of the old form follow their step', async () => {
  await using rig = await startSockets()
  const socket = await rig.connect()
  runSampler(rig)
  await socket.until(isEnd)
  assert.deepEqual(outline(socket.frames), [
    'status 0',
    'status 1',
    'status 1',
    'execution_start',
    'execution_cached',
    'progress_state',
    'executing 3',
    'progress_state',
    'progress',
    'binary 1',
    'binary 3',
    'progress_state',
    'execution_success',
    'status 0',
    'executing null',
  ])
  const [preview, text] = socket.frames.filter((frame): frame is BinaryFrame => 'binary' in frame)
  assert.equal(preview.binary.toString('latin1'), '\0\0\0\x01\0\0\0\x01picture')
  assert.equal(text.binary.toString('latin1'), '\0\0\0\x03\0\0\0\x013hello text')
})

test('a client that understands metadata gets its previews with it, before the step', async () => {
  await using rig = await startSockets()
  const socket = await rig.connect()
  socket.ws.send('this is no JSON')
  socket.ws.send(JSON.stringify({ type: 'feature_flags', data: { supports_preview_metadata: true } }))
  const answer = await socket.until((frame) => isText(frame, 'feature_flags'))
  assert.deepEqual((answer as TextFrame).data, TEST_FEATURES)
  // Later messages are ignored.
  socket.ws.send(JSON.stringify({ type: 'feature_flags', data: {} }))
  runSampler(rig)
  await socket.until(isEnd)
  const kinds = outline(socket.frames)
  assert.equal(kinds.filter((kind) => kind === 'feature_flags').length, 1)
  assert.deepEqual(kinds.slice(kinds.indexOf('binary 4') - 1, kinds.indexOf('binary 4') + 2), [
    'progress_state',
    'binary 4',
    'progress',
  ])
  const preview = socket.frames.find((frame): frame is BinaryFrame => 'binary' in frame)
  assert.ok(preview)
  const length = preview.binary.readUInt32BE(4)
  assert.equal(
    preview.binary.subarray(8, 8 + length).toString(),
    `{"node_id": "3", "prompt_id": "${JOB}", "display_node_id": "3", "parent_node_id": null, "real_node_id": "3", "image_type": "image/jpeg"}`,
  )
  assert.equal(preview.binary.subarray(8 + length).toString(), 'picture')
})

test('what is cached is told at once, and a failure names what was done before it', async () => {
  await using rig = await startSockets()
  const socket = await rig.connect()
  rig.move(JOB, 'queued')
  rig.move(JOB, 'taken')
  rig.say(JOB, { type: 'started', nodesTotal: 2 })
  rig.say(JOB, { type: 'cached', nodeIds: ['1'] })
  const file = { kind: 'file', filename: 'a.png', subfolder: 's', folder: 'output', contentType: null } as const
  const report = { images: [{ ...file, async *read() {} }], text: [{ kind: 'value', value: 'x' }] } as const
  rig.say(JOB, { type: 'node_report', ...toRef('1', 'SaveImage'), report, cached: true })
  rig.say(JOB, { type: 'node_finished', ...toRef('1', 'SaveImage') })
  rig.say(JOB, { type: 'node_started', ...toRef('2', 'Break') })
  rig.say(JOB, { type: 'node_blocked', ...toRef('2', 'Break'), message: 'not now' })
  rig.move(JOB, 'ended')
  const failure = {
    code: 'node_execution_error',
    message: 'it broke',
    nodeId: '2',
    classType: 'Break',
    traceback: '  in run, nodes/break.ts line 3\nValueError: it broke',
    exceptionType: 'ValueError',
    currentInputs: { value: [1] },
    currentOutputs: ['1', '2'],
  }
  rig.say(JOB, { type: 'failed', failure })
  await socket.until(isEnd)
  const executed = socket.frames.find((frame) => isText(frame, 'executed')) as TextFrame
  assert.deepEqual(executed.data, {
    node: '1',
    display_node: '1',
    output: { images: [{ filename: 'a.png', subfolder: 's', type: 'output' }], text: ['x'] },
    prompt_id: JOB,
  })
  const [blocked, failed] = socket.frames.filter((frame) => isText(frame, 'execution_error')) as TextFrame[]
  const place = { prompt_id: JOB, node_id: '2', node_type: 'Break', executed: [] }
  assert.deepEqual(blocked.data, {
    ...place,
    exception_message: 'Execution Blocked: not now',
    exception_type: 'ExecutionBlocked',
    ...{ traceback: [], current_inputs: [], current_outputs: [] },
  })
  assert.deepEqual(failed.data, {
    ...place,
    exception_message: 'it broke\n',
    exception_type: 'ValueError',
    // Lines that name our own source files are left out.
    traceback: ['ValueError: it broke\n'],
    ...{ current_inputs: { value: [1] }, current_outputs: ['1', '2'], timestamp: 1_700_000_000_000 },
  })
  assert.deepEqual(outline(socket.frames).slice(-3), ['execution_error', 'status 0', 'executing null'])
})

test('an interrupt names the node that was at work; a dropped job changes the queue only', async () => {
  await using rig = await startSockets()
  const socket = await rig.connect()
  const second = JOB.replace('5c', '6c')
  rig.move(JOB, 'queued')
  rig.move(JOB, 'taken')
  rig.say(JOB, { type: 'started', nodesTotal: 1 })
  rig.say(JOB, { type: 'node_started', ...toRef('1', 'DemoSteps') })
  rig.move(second, 'queued')
  rig.move(second, 'dropped')
  rig.move(JOB, 'ended')
  rig.say(JOB, { type: 'interrupted' })
  await socket.until(isEnd)
  const kinds = outline(socket.frames)
  // As ComfyUI does when the last waiting job goes: twice.
  assert.deepEqual(kinds.slice(kinds.indexOf('executing 1') + 1), [
    ...['status 2', 'status 1', 'status 1', 'execution_interrupted', 'status 0', 'executing null'],
  ])
  const interrupted = socket.frames.find((frame) => isText(frame, 'execution_interrupted')) as TextFrame
  const { timestamp: _time, ...named } = interrupted.data
  assert.deepEqual(named, { prompt_id: JOB, node_id: '1', node_type: 'DemoSteps', executed: [] })
})

test('the end of a job whose worker died is told from its record', async () => {
  await using rig = await startSockets()
  const socket = await rig.connect()
  rig.move(JOB, 'queued')
  rig.move(JOB, 'taken')
  rig.say(JOB, { type: 'started', nodesTotal: 1 })
  rig.move(JOB, 'returned')
  rig.move(JOB, 'taken')
  rig.say(JOB, { type: 'started', nodesTotal: 1 })
  const error = { code: 'worker_lost', message: 'the worker was lost', nodeId: null, classType: null, traceback: null }
  rig.jobs.set(JOB, { id: JOB, status: 'failed', error, startedAt: new Date() } as never)
  rig.move(JOB, 'ended')
  await socket.until(isEnd)
  assert.deepEqual(outline(socket.frames).slice(1), [
    ...['status 1', 'status 1', 'execution_start', 'status 1', 'notification', 'status 1', 'execution_start'],
    ...['execution_error', 'status 0', 'executing null'],
  ])
  const failed = socket.frames.find((frame) => isText(frame, 'execution_error')) as TextFrame
  assert.equal(failed.data['exception_type'], 'ServiceError')
})

test('whoever comes back in the middle of its own run is shown where it is', async () => {
  await using rig = await startSockets()
  rig.live.set('ada', 1)
  rig.clients.set(JOB, 'mine')
  rig.say(JOB, { type: 'started', nodesTotal: 1 })
  rig.say(JOB, { type: 'node_started', ...toRef('7') })
  const back = await rig.connect('token=ada&clientId=mine')
  await back.untilCount(2)
  assert.deepEqual(back.frames[1], { type: 'executing', data: { node: '7' } })
  const other = await rig.connect('token=ada&clientId=other')
  rig.say(JOB, { type: 'node_progress', ...toRef('7'), value: 1, max: 2 })
  const state = (await other.until((frame) => isText(frame, 'progress_state'))) as TextFrame
  assert.deepEqual(outline(other.frames).slice(0, 2), ['status 1', 'progress_state'])
  assert.deepEqual(Object.keys(state.data['nodes'] as object), ['7'])
})

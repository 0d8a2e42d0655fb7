import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject } from '../../../../../lib/json/lossless-json.ts'
import type { EngineMessage } from '../wire/socket-frames.ts'
import { ForwardingListener, RunEmitter } from './run-emitter.ts'

function follow() {
  const hints: string[] = []
  const graph = new Map()
  const toReport = async () => ({})
  const emitter = new RunEmitter({ graph, nodesTotal: 1, toReport, redact: (text) => text, emit() {} })
  const listener = new ForwardingListener(emitter)
  const follower = { heard() {}, hint: () => hints.push('now'), hintSoon: () => hints.push('soon') }
  return { listener, follower, hints }
}

const message = (type: string, data: JsonObject): EngineMessage => ({ kind: 'json', type, data })

test('the history is asked for after the last message of a run, which follows its entry, and not after the success before it', () => {
  const { listener, follower, hints } = follow()
  listener.wake(follower)
  listener.onMessage(message('executing', { node: '1' }))
  assert.deepEqual(hints, [])
  listener.onMessage(message('execution_success', {}))
  assert.deepEqual(hints, ['soon'])
  listener.onMessage(message('executing', { node: null }))
  assert.deepEqual(hints, ['soon', 'now'])
})

test('a run whose end was heard before its submit was answered is asked for at once', () => {
  const { listener, follower, hints } = follow()
  listener.onMessage(message('execution_success', {}))
  listener.wake(follower)
  assert.deepEqual(hints, ['now'])
})

test('a printed death of the worker counts as the end of the run, until a message of the run comes', () => {
  const { listener } = follow()
  listener.onLog('Exception in a thread of some node\n')
  assert.equal(listener.isSaidToBeOver, false)
  for (const piece of ['Exception in thread ', 'Thread-1 (prompt_worker)', ':\n']) listener.onLog(piece)
  listener.onLog('Traceback (most recent call last):\n')
  assert.equal(listener.isSaidToBeOver, true)
  listener.onMessage(message('progress', { value: 1, max: 2 }))
  assert.equal(listener.isSaidToBeOver, false)
})

/** Real sittings with a ComfyUI server, frame by frame: what the engine says upward is what the server told. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readGraph } from '../../../engine/graph/graph-json.ts'
import { type JsonObject, stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import { readHistory } from '../../../src/adapters/engines/comfyui/run/run-endings.ts'
import {
  startTranslation,
  type Translated,
  translate,
} from '../../../src/adapters/engines/comfyui/run/translate-messages.ts'
import {
  type EngineMessage,
  readBinaryFrame,
  readTextFrame,
} from '../../../src/adapters/engines/comfyui/wire/socket-frames.ts'
import { isBinary, type Recording, readRecording } from '../../support/engines/fake-comfyui/recording.ts'

function messagesOf({ frames }: Recording): EngineMessage[] {
  return frames.flatMap((frame) => {
    const message = isBinary(frame)
      ? readBinaryFrame(Buffer.from(frame.binary, 'base64'))
      : readTextFrame(stringifyLosslessJson(frame))
    assert.ok(message !== null, 'every recorded frame is understood')
    return [message]
  })
}

function replay(name: string, without: (message: EngineMessage) => boolean = () => false) {
  const recording = readRecording(name)
  let state = startTranslation(readGraph(recording.post.request.json.prompt))
  const events: Translated[] = []
  for (const message of messagesOf(recording)) {
    if (without(message)) continue
    const step = translate(state, message)
    state = step.state
    events.push(...step.events)
  }
  const history = readHistory(Object.values(recording.history)[0] as unknown as JsonObject)
  return { events, state, history, recording }
}

function outline(events: readonly Translated[]): string {
  return events
    .flatMap((event) => {
      if (event.type === 'node_started') return [`${event.nodeId}+`]
      if (event.type === 'node_finished') return [`${event.nodeId}.`]
      if (event.type === 'node_progress') return [`${event.nodeId}=${event.value}/${event.max}`]
      if (event.type === 'executed') return [`${event.nodeId}!${event.cached ? 'cached' : ''}`]
      if (event.type === 'node_blocked') return [`${event.nodeId}?${event.message}`]
      if (event.type === 'preview') return [`${event.nodeId}*`]
      if (event.type === 'node_text') return [`${event.nodeId}"${event.text}"`]
      return event.type === 'cached' ? [`cached(${event.nodeIds.toSorted().join()})`] : []
    })
    .join(' ')
}

const OUTLINES: Readonly<Record<string, { outline: string; end: string; outcome: string }>> = {
  'run1-success': {
    outline: 'cached() 1+ 1. 2+ 2. 5+ 5! 5. 3+ 3. 4+ 4! 4.',
    end: 'success',
    outcome: 'success',
  },
  'run2-all-cached': { outline: 'cached(1,2,3,4,5) 5!cached 4!cached', end: 'success', outcome: 'success' },
  'run3-partly-cached': {
    outline: 'cached(1) 2+ 2. 5+ 5! 5. 3+ 3. 4+ 4! 4.',
    end: 'success',
    outcome: 'success',
  },
  'progress-legacy-preview': {
    outline: 'cached() 1+ 1=1/3 1* 1=2/3 1* 1=3/3 1* 1. 2+ 2"hello text" 2. 3+ 3! 3.',
    end: 'success',
    outcome: 'success',
  },
  'progress-metadata-preview': {
    outline: 'cached() 1+ 1=1/3 1* 1=2/3 1* 1=3/3 1* 1. 2+ 2"hello text" 2. 3+ 3! 3.',
    end: 'success',
    outcome: 'success',
  },
  'preview-any': { outline: 'cached() 1+ 1. 5+ 5! 5.', end: 'success', outcome: 'success' },
  'runtime-error': { outline: 'cached() 1+ 1. 4+ 4! 4. 2+', end: 'error', outcome: 'error' },
  interrupt: { outline: 'cached() 1+ 1=1/100', end: 'interrupted', outcome: 'interrupted' },
}

for (const [name, expected] of Object.entries(OUTLINES)) {
  test(`the recording ${name} is told as it happened`, () => {
    const { events, state, history } = replay(name)
    assert.equal(outline(events), expected.outline)
    assert.equal(state.end, expected.end)
    assert.equal(history.outcome, expected.outcome)
  })
}

test('a blocked branch is an event with its message and does not end the run', () => {
  const { events, state, history } = replay('execution-blocker-verbose')
  assert.match(outline(events), /\?Blocked Execution/)
  assert.deepEqual([state.end, history.outcome], ['success', 'success'])
  assert.doesNotMatch(outline(replay('execution-blocker-silent').events), /\?/)
})

test('nodes made by expansion keep their own ids and name the node that they were expanded from', () => {
  const { events } = replay('expansion')
  const child = events.find((event) => event.type === 'node_started' && event.nodeId.includes('.'))
  assert.ok(child?.type === 'node_started')
  assert.equal(child.displayNodeId, child.nodeId.split('.')[0])
  assert.equal(child.parentNodeId, child.displayNodeId)
  assert.notEqual(child.classType, '')
})

test('a node that is staged twice for its lazy inputs is told in order, and finishes once', () => {
  for (const name of ['lazy', 'lazy-switch']) {
    const { events, state } = replay(name)
    const finished = events.filter((event) => event.type === 'node_finished').map((event) => event.nodeId)
    assert.equal(new Set(finished).size, finished.length)
    assert.equal(state.end, 'success')
  }
})

test('full pictures of SaveImageWebsocket arrive as previews, byte for byte', () => {
  const { events } = replay('save-image-websocket')
  const pictures = events.filter((event) => event.type === 'preview')
  assert.ok(pictures.length > 0)
  assert.match(outline(events), / (\w+)=0\/2 \1\* \1=1\/2 \1\* /, 'each after the step that it belongs to')
  for (const { bytes, contentType, classType, isResult } of pictures) {
    assert.deepEqual([contentType, isResult], ['image/png', true])
    assert.equal(classType, 'SaveImageWebsocket')
    assert.deepEqual([...bytes.subarray(0, 4)], [0x89, 0x50, 0x4e, 0x47])
  }
})

test('an older server that never tells progress_state gives the same beginnings, ends and steps', () => {
  const isState = (message: EngineMessage) => message.kind === 'json' && message.type === 'progress_state'
  assert.equal(outline(replay('run1-success', isState).events), 'cached() 1+ 1. 2+ 2. 5+ 5! 5. 3+ 3. 4+ 4! 4.')
  assert.equal(
    outline(replay('progress-legacy-preview', isState).events),
    'cached() 1+ 1=1/3 1* 1=2/3 1* 1=3/3 1* 1. 2+ 2"hello text" 2. 3+ 3! 3.',
  )
})

test('the error of a failed run is in both the socket and the history, with its traceback', () => {
  const { state, history } = replay('runtime-error')
  assert.equal(state.error?.exception_type, 'RuntimeError')
  assert.deepEqual(history.error, state.error)
  assert.deepEqual(
    history.outputs.map(([nodeId]) => nodeId),
    ['4'],
  )
})

test('a history without its success, as a cycle at run time leaves it, is a failure', () => {
  const { recording } = replay('run1-success')
  const entry = Object.values(recording.history)[0] as unknown as { status: { messages: unknown[] } }
  const cut = { ...entry, status: { ...entry.status, messages: entry.status.messages.slice(0, 2) } }
  assert.equal(readHistory(cut as unknown as JsonObject).outcome, 'error')
})

test('frames that are cut short or of an unknown kind are dropped', () => {
  for (const frame of [
    [],
    [0, 0, 0, 1],
    [0, 0, 0, 9, 0, 0, 0, 1, 5],
    [0, 0, 0, 4, 0, 0, 1, 0, 1],
    [0, 0, 0, 3, 0, 0, 0, 9, 1],
  ]) {
    assert.equal(readBinaryFrame(Uint8Array.from(frame)), null)
  }
  for (const text of ['', 'x', '[]', '{"data":{}}', 'null']) assert.equal(readTextFrame(text), null)
})

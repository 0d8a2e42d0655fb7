import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Queue } from '../wire/comfy-api.ts'
import { QueueWatch } from './queue-watch.ts'

const IDLE_MS = 1_000
const STILL_MS = 5_000

interface Server {
  readonly heardAt?: ReadonlyMap<string, number>
  readonly abandoned?: readonly string[]
}

function watch({ heardAt = new Map(), abandoned = [] }: Server = {}): QueueWatch {
  return new QueueWatch({
    bounds: { idleMs: IDLE_MS, queueStillMs: STILL_MS },
    dispatcher: { lastHeardAt: (promptId) => heardAt.get(promptId) ?? null },
    fitness: { isAbandoned: (promptId) => abandoned.includes(promptId) },
    sinceMs: 0,
  })
}

function running(...promptIds: string[]): Queue {
  return { running: promptIds.map((promptId) => ({ promptId, clientId: null })), pending: [] }
}

test('a run waits while the queue before it moves, however long that takes', () => {
  const waiting = watch()
  for (let prompt = 0; prompt < 100; prompt++) {
    const beganMs = prompt * STILL_MS
    assert.equal(waiting.look(running(`prompt ${prompt}`), beganMs), null)
    assert.equal(waiting.look(running(`prompt ${prompt}`), beganMs + STILL_MS - 1), null)
  }
})

test('it is withdrawn when the same prompt runs for too long', () => {
  const waiting = watch()
  assert.equal(waiting.look(running('stranger'), 100), null)
  assert.equal(waiting.look(running('stranger'), 100 + STILL_MS - 1), null)
  assert.equal(waiting.look(running('stranger'), 100 + STILL_MS), 'still')
})

test('it may wait behind a run of ours as long as that is heard of', () => {
  const heardAt = new Map([['ours', 0]])
  const waiting = watch({ heardAt })
  for (let nowMs = 0; nowMs < 100 * STILL_MS; nowMs += STILL_MS / 2) {
    heardAt.set('ours', nowMs)
    assert.equal(waiting.look(running('ours'), nowMs), null)
  }
  const lastMs = heardAt.get('ours') ?? 0
  assert.equal(waiting.look(running('ours'), lastMs + STILL_MS - 1), null)
  assert.equal(waiting.look(running('ours'), lastMs + STILL_MS), 'still')
})

test('it is withdrawn soon when nothing runs there, or only what was given up', () => {
  for (const queue of [running(), running('given up')]) {
    const waiting = watch({ abandoned: ['given up'] })
    assert.equal(waiting.look(queue, 0), null)
    assert.equal(waiting.look(queue, IDLE_MS - 1), null)
    assert.equal(waiting.look(queue, IDLE_MS), 'idle')
  }
})

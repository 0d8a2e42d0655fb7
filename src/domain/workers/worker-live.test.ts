import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { ServiceError } from '../errors.ts'
import type { JobChanged } from '../events/event-bus.ts'
import type { LiveEvent } from '../events/live-event.ts'
import type { Lease } from '../jobs/job-store.ts'
import type { HeldClaim } from './held-claims.ts'
import { encodeFrame } from './wire/live-frame.ts'
import type { WorkerIdentity } from './worker-keys.ts'
import { WorkerLive } from './worker-live.ts'

const WORKER: WorkerIdentity = {
  keyId: 'abcdefghijkl',
  pools: new Set(['default']),
  hasCredentials: false,
  hasBuilds: false,
  caller: { accountId: '$workers', keyId: 'abcdefghijkl', scopes: null, endpoints: null },
}
const PREVIEW_BYTES = 1024 * 1024

function preview(): LiveEvent {
  const node = { nodeId: '1', classType: 'X', displayNodeId: '1', parentNodeId: null }
  return { type: 'preview', bytes: new Uint8Array(PREVIEW_BYTES), contentType: 'image/png', ...node } as LiveEvent
}

function openRig() {
  const lease: Lease = { jobId: randomUUID(), leaseId: randomUUID() }
  const told: string[] = []
  let tellChanged: (changed: JobChanged) => void = () => {}
  let isHeld = true
  let looks: Promise<void> = Promise.resolve()
  const live = new WorkerLive({
    outputCheck: null,
    bus: {
      publishLive: ({ event }) => void told.push(event.type),
      onChanged(listener) {
        tellChanged = listener
        return () => {}
      },
      onWork: () => () => {},
    },
    held: {
      learn() {},
      forget() {},
      async mustFind({ jobId }) {
        await looks
        if (!isHeld) throw new ServiceError('not_found', 'not held')
        return { job: { id: jobId, accountId: 'account' } } as unknown as HeldClaim
      },
    },
    heartbeat: { nodeId: 'node' },
  })
  const session = live.open(WORKER, () => {})
  const say = (event: LiveEvent) => session.take(encodeFrame({ lease, event })!)
  const order = (message: object) => assert.equal(session.order(JSON.stringify(message)), true)
  order({ hold: [{ job_id: lease.jobId, lease_id: lease.leaseId }] })
  return {
    say,
    order,
    told,
    lease,
    lose() {
      isHeld = false
    },
    pause() {
      const { promise, resolve } = Promise.withResolvers<void>()
      looks = promise
      return resolve
    },
    move: (move: JobChanged['move']) =>
      tellChanged({ jobId: lease.jobId, accountId: 'account', version: 2, ...(move && { move }) }),
    async settled() {
      for (let count = 0; count < 500; count++) await turn()
    },
  }
}

test('what is said under a lease that is over is not told, though it was held before', async () => {
  const { say, told, lose, settled } = openRig()
  say({ type: 'started', nodesTotal: 1 })
  await settled()
  lose()
  say({ type: 'cached', nodeIds: [] })
  say({ type: 'succeeded' })
  await settled()
  assert.deepEqual(told, ['started'])
})

test('the last word is told when the job has ended, whichever of the two is heard first, and nothing after it', async () => {
  for (const isHeardFirst of [true, false]) {
    const { say, order, told, lease, lose, move, settled } = openRig()
    say({ type: 'started', nodesTotal: 1 })
    await settled()
    lose()
    if (isHeardFirst) move('ended')
    say({ type: 'succeeded' })
    order({ drop: [lease.jobId] })
    await settled()
    if (!isHeardFirst) move('ended')
    say({
      type: 'failed',
      failure: { code: 'x', message: '', nodeId: null, classType: null, traceback: null, exceptionType: '' },
    })
    await settled()
    assert.deepEqual(told, ['started', 'succeeded'])
  }
})

test('what waits for a look at a lease is bounded in bytes, for all connections of a key together', async () => {
  const { say, told, pause, settled } = openRig()
  await settled()
  const go = pause()
  for (let count = 0; count < 100; count++) say(preview())
  go()
  await settled()
  assert.equal(told.length, 63)
  say(preview())
  await settled()
  assert.equal(told.length, 64)
})

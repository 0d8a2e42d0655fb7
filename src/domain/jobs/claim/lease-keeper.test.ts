import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../../../../lib/log.ts'
import { createFixedClock } from '../../../../test/support/fixed-clock.ts'
import { ServiceError } from '../../errors.ts'
import type { JobStatus } from '../transitions.ts'
import { LeaseKeeper } from './lease-keeper.ts'
import type { WorkerDeps, WorkerOptions } from './worker-options.ts'

const LEASE_MS = 30_000

/** A worker with these runs, and a store that answers renewals as it is told. */
function openKeeper(jobIds: readonly string[]) {
  const clock = createFixedClock()
  const state = { held: new Map<string, JobStatus>(), error: null as Error | null }
  const store = {
    async renew() {
      if (state.error !== null) throw state.error
      return [...state.held].map(([jobId, status]) => ({ jobId, status }))
    },
  }
  const told: string[] = []
  const runs = jobIds.map((jobId) => ({
    lease: { jobId, leaseId: `lease of ${jobId}` },
    leaseUntil: new Date(clock.now().getTime() + LEASE_MS),
    lose: () => void told.push(`${jobId} is lost`),
    cancel: () => void told.push(`${jobId} is cancelled`),
  }))
  const deps = { store, clock, log: silentLog } as unknown as WorkerDeps
  const keeper = new LeaseKeeper(deps, { leaseMs: LEASE_MS, outageGraceMs: LEASE_MS } as WorkerOptions)
  return { clock, state, runs, told, renew: () => keeper.tryToRenew(runs) }
}

test('a renewal prolongs what is still held, ends what is lost, and passes a cancel on', async () => {
  const { clock, state, runs, told, renew } = openKeeper(['a', 'b', 'c'])
  state.held = new Map([
    ['a', 'running'],
    ['c', 'canceling'],
  ])
  clock.advance(10_000)
  await renew()
  assert.deepEqual(told, ['b is lost', 'c is cancelled'])
  const ends = runs.map(({ leaseUntil }) => leaseUntil.getTime() - clock.now().getTime())
  assert.deepEqual(ends, [LEASE_MS, LEASE_MS - 10_000, LEASE_MS])
})

test('a renewal that fails ends a run when its lease has run out, and not before', async () => {
  const { clock, state, told, renew } = openKeeper(['a'])
  state.error = new Error('a defect')
  clock.advance(LEASE_MS - 1)
  await renew()
  assert.deepEqual(told, [])
  clock.advance(1)
  await renew()
  assert.deepEqual(told, ['a is lost'])
})

test('while the store is away a run goes on for one more lease time', async () => {
  const { clock, state, told, renew } = openKeeper(['a'])
  state.error = new ServiceError('store_unavailable', 'the database cannot be reached')
  clock.advance(2 * LEASE_MS - 1)
  await renew()
  assert.deepEqual(told, [])
  clock.advance(1)
  await renew()
  assert.deepEqual(told, ['a is lost'])
})

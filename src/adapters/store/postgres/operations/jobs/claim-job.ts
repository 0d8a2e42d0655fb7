/**
 * Claim: finds the best candidate and takes it, guarded by its account's room. Any number of processes claim at the same time: a job
 * that another one is taking is passed over, and a claim that lost such a race is tried again at once. Claims that this process
 * makes in the same moment travel together: they do not wait for each other, an account is counted on once, and together they
 * take the jobs that they would have taken one after the other.
 */
import type { Claim, JobStore } from '../../../../../domain/jobs/job-store.ts'
import type { Connected } from '../../database/connections.ts'
import { createGather } from '../../database/gather.ts'
import { type Asking, Claimer, createClaimRounds } from './claims/claim-rounds.ts'
import { FIND_CLAIMED } from './claims/claim-statements.ts'
import { type ClaimedRow, ENGINE_COLUMN, LANE_COLUMN, readClaim, toClaim } from './claims/claimed-job.ts'

// Not more than heads are looked at.
const MAX_TOGETHER = 32

type Claims = Required<Pick<JobStore, 'claim' | 'claimSeveral'>>

export function createClaims(relaxed: Connected): Claims {
  const ask = gatherByPool(createTakeAll(relaxed), relaxed.noteBatch)
  async function claim(asking: Asking): Promise<Claim | null> {
    const row = await ask(asking)
    return row === null ? null : toClaim(relaxed, row, asking)
  }
  return {
    claim: ({ engines, ...request }) => claim({ ...request, party: new Claimer(() => engines) }),
    claimSeveral({ leaseIds, offersAfter, ...request }) {
      const party = new Claimer(offersAfter)
      return Promise.allSettled(leaseIds.map((leaseId) => claim({ ...request, leaseId, party })))
    },
  }
}

export async function findClaim(relaxed: Connected, leaseId: string): Promise<Claim | null> {
  const found = await relaxed.get(FIND_CLAIMED, [[leaseId]])
  if (found === undefined) return null
  const [pool, outputsReused, ...row] = found
  return readClaim(relaxed, row, { pool, outputsReused })
}

/** `error`: it is unknown whether it took something. */
type Outcome = { readonly row: ClaimedRow | null } | { readonly error: unknown }
type TakeAll = (askings: readonly Asking[]) => Promise<readonly Outcome[]>

function gatherByPool(run: TakeAll, onBatch: (size: number) => void): (asking: Asking) => Promise<ClaimedRow | null> {
  const gathers = new Map<string, { readonly ask: (asking: Asking) => Promise<Outcome>; asked: number }>()
  return async (asking) => {
    const name = `${asking.party.isForAny} ${asking.pool}`
    const gather = gathers.get(name) ?? {
      ask: createGather({ run, onBatch, maxItems: MAX_TOGETHER, maxRunning: 1 }),
      asked: 0,
    }
    gathers.set(name, gather)
    gather.asked += 1
    try {
      const outcome = await gather.ask(asking)
      if ('error' in outcome) throw outcome.error
      return outcome.row
    } finally {
      gather.asked -= 1
      if (gather.asked === 0) gathers.delete(name)
    }
  }
}

function createTakeAll(relaxed: Connected): TakeAll {
  const takeSome = createClaimRounds(relaxed)
  return async (askings) => {
    const outcomes = new Map<string, Outcome>()
    let left = askings
    while (left.length > 0) {
      try {
        const taken = await takeSome(left)
        for (const row of taken.rows) {
          const [leaseId] = row
          outcomes.set(leaseId, { row })
          const asking = left.find((each) => each.leaseId === leaseId)
          asking?.party.chosen.push({ engineId: row[ENGINE_COLUMN], lane: row[LANE_COLUMN] })
        }
        left = taken.left
      } catch (error) {
        // What was taken before the store went away must still reach the worker that asked for it.
        for (const { leaseId } of left) outcomes.set(leaseId, { error })
        break
      }
    }
    return askings.map(({ leaseId }) => outcomes.get(leaseId) ?? { row: null })
  }
}

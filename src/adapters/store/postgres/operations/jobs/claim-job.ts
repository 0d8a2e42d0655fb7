/**
 * Claim: finds the best candidate and takes it, guarded by its account's room. Any number of processes claim at the same time: a job
 * that another one is taking is passed over, and a claim that lost such a race is tried again at once. Claims that this process
 * makes in the same moment, for engines that take everything, travel as one statement: they do not wait for each other, an account
 * is counted on once, and together they take the jobs that they would have taken one after the other.
 */
import type { EngineOffer } from '../../../../../domain/engine/fleet/lane-offers.ts'
import { isStoreAway } from '../../../../../domain/errors.ts'
import type { Claim, ClaimRequest, JobStore } from '../../../../../domain/jobs/job-store.ts'
import type { Connected } from '../../database/connections.ts'
import { createGather } from '../../database/gather.ts'
import { isDuplicateOf } from '../../database/postgres-error.ts'
import {
  FIND_CLAIMED,
  TAKE_ANY,
  TAKE_FITTING,
  TAKE_SEVERAL,
  WAIT_FOR_ANY,
  WAIT_FOR_FITTING,
  WAIT_FOR_SEVERAL,
} from './claims/claim-statements.ts'
import { type ClaimedRow, readClaim, toClaim } from './claims/claimed-job.ts'

// Not more than heads are looked at.
const MAX_TOGETHER = 32
const MAX_PARTS = 256
const MAX_RACES = 8
const MAX_TRIES = 3
// After an account was busy, its claimers are waited for this many times before claims pass over busy accounts again.
const PATIENT_CLAIMS = 16

export function createClaimJob(relaxed: Connected): JobStore['claim'] {
  const takeAll = createTakeAll(relaxed)
  const gathered = gatherByPool(takeAll, relaxed.noteBatch)
  return async (request) => {
    const row = isForAny(request) ? await gathered(request) : (await takeAll([request]))[0]
    return row === null || row === undefined ? null : toClaim(relaxed, row, request)
  }
}

export async function findClaim(relaxed: Connected, leaseId: string): Promise<Claim | null> {
  const found = await relaxed.get(FIND_CLAIMED, [[leaseId]])
  if (found === undefined) return null
  const [pool, outputsReused, ...row] = found
  return readClaim(relaxed, row, { pool, outputsReused })
}

function isForAny({ engines }: ClaimRequest): boolean {
  return engines.some(({ lanes }) => lanes === null)
}

type TakeAll = (requests: readonly ClaimRequest[]) => Promise<readonly (ClaimedRow | null)[]>

function gatherByPool(
  run: TakeAll,
  onBatch: (size: number) => void,
): (request: ClaimRequest) => Promise<ClaimedRow | null> {
  const pools = new Map<
    string,
    { readonly ask: (request: ClaimRequest) => Promise<ClaimedRow | null>; asked: number }
  >()
  return async (request) => {
    const { pool } = request
    const gather = pools.get(pool) ?? {
      ask: createGather({ run, onBatch, maxItems: MAX_TOGETHER, maxRunning: 1 }),
      asked: 0,
    }
    pools.set(pool, gather)
    gather.asked += 1
    try {
      return await gather.ask(request)
    } finally {
      gather.asked -= 1
      if (gather.asked === 0) pools.delete(pool)
    }
  }
}

/** Where a part of the waiting accounts ends. For engines that serve certain lanes, parts are the same accounts in all of them. */
interface PartEnd {
  readonly lane: string
  readonly accountId: string
}

const BEGINNING: PartEnd = { lane: '', accountId: '' }

function isBefore(one: PartEnd, other: PartEnd): boolean {
  return one.lane === other.lane ? one.accountId < other.accountId : one.lane < other.lane
}

/**
 * Claims for one pool. Remembers, for each pool that is crowded, where the next claim goes on; and for each that had work the last
 * time, how many claims should wait for busy accounts. In a pool without work the first statement is the one that tells why.
 */
function createTakeAll(relaxed: Connected): TakeAll {
  const starts = new Map<string, PartEnd>()
  const patience = new Map<string, number>()

  /** One round through the parts; takes as many jobs as one statement finds. */
  async function takeSome(requests: readonly ClaimRequest[]): Promise<readonly ClaimedRow[]> {
    const { pool } = requests[0] as ClaimRequest
    const start = starts.get(pool) ?? BEGINNING
    const patientClaims = patience.get(pool) ?? null
    const ways = findWays(requests.length, patientClaims)
    let after = start
    let races = 0
    for (let parts = 1; parts <= MAX_PARTS; ) {
      const way = ways.length > 1 ? (ways.shift() as Way) : 'alone'
      const { rows, wasPicked, end } = await takeSurely(relaxed, requests, { after, way })
      if (rows.length > 0) {
        const wasBusy = way === 'alone' && patientClaims === 0
        patience.set(pool, wasBusy ? PATIENT_CLAIMS : Math.max(0, (patientClaims ?? 0) - 1))
        if (end === null) starts.delete(pool)
        else starts.set(pool, end)
        return rows
      }
      if (way !== 'alone') continue
      if (wasPicked) {
        races += 1
        if (races === MAX_RACES) return []
        continue
      }
      // Nobody in this part has both room and a job: on to the next part, at last to those before the first one.
      const isRound = isBefore(after, start) && !(end !== null && isBefore(end, start))
      if (isRound || (end === null && start === BEGINNING)) break
      after = end ?? BEGINNING
      parts += 1
    }
    patience.delete(pool)
    starts.delete(pool)
    return []
  }

  return async (requests) => {
    const claimed = new Map<string, ClaimedRow>()
    let left = requests
    while (left.length > 0) {
      // What was taken before the store went away must reach whoever asked for it.
      const rows = await takeSome(left).catch((error) => {
        if (claimed.size === 0) throw error
        return []
      })
      if (rows.length === 0) break
      for (const row of rows) claimed.set(row[0], row)
      left = left.filter(({ leaseId }) => !claimed.has(leaseId))
    }
    return requests.map(({ leaseId }) => claimed.get(leaseId) ?? null)
  }
}

interface Taken {
  readonly rows: readonly ClaimedRow[]
  /** There was a job for an account with room; without rows somebody else was quicker. */
  readonly wasPicked: boolean
  readonly end: PartEnd | null
}

/**
 * `quickly`: passes over busy accounts. `waiting`: waits for them. `alone`: for the first request only, waits where all accounts are
 * busy, and tells why nothing was taken.
 */
type Way = 'quickly' | 'waiting' | 'alone'

/** What to try, one after the other. `patientClaims`: null when nothing waited the last time. */
function findWays(requests: number, patientClaims: number | null): Way[] {
  if (patientClaims === 0) return ['quickly', 'alone']
  return patientClaims !== null && requests > 1 ? ['waiting', 'alone'] : ['alone']
}

interface Try {
  readonly after: PartEnd
  readonly way: Way
}

/**
 * After a broken connection nobody knows whether something was taken: the leases find their jobs. A first try that the server is
 * still at work on cannot take a second job for the same lease: that a lease holds one job is kept by a unique index.
 */
async function takeSurely(relaxed: Connected, requests: readonly ClaimRequest[], step: Try): Promise<Taken> {
  for (let tries = 1; ; tries += 1) {
    try {
      if (tries > 1) {
        const rows = await relaxed.all(FIND_CLAIMED, [requests.map(({ leaseId }) => leaseId)])
        if (rows.length > 0) return { rows: rows.map(([, , ...row]) => row), wasPicked: true, end: null }
      }
      return await (step.way === 'alone' ? takeAlone : takeTogether)(relaxed, requests, step)
    } catch (error) {
      const mayHaveTaken = isStoreAway(error) || isDuplicateOf(error, 'job_held')
      if (!mayHaveTaken || tries === MAX_TRIES) throw error
    }
  }
}

async function takeTogether(relaxed: Connected, requests: readonly ClaimRequest[], step: Try): Promise<Taken> {
  const [first] = requests as readonly [ClaimRequest]
  const [asked, values] =
    requests.length > 1
      ? [step.way === 'waiting' ? WAIT_FOR_SEVERAL : TAKE_SEVERAL, toSharedValues(requests, step.after)]
      : [isForAny(first) ? TAKE_ANY : TAKE_FITTING, toValues(first, step.after)]
  const rows = await relaxed.all(asked, values)
  const end = toPartEnd(rows[0]?.[0] ?? null)
  return { rows: rows.map(([, ...claimed]) => claimed), wasPicked: rows.length > 0, end }
}

async function takeAlone(relaxed: Connected, [first]: readonly ClaimRequest[], { after }: Try): Promise<Taken> {
  if (first === undefined) throw new Error('Somebody claims.')
  const row = await relaxed.get(isForAny(first) ? WAIT_FOR_ANY : WAIT_FOR_FITTING, toValues(first, after))
  if (row === undefined) throw new Error('A claim that waits is always answered with a row.')
  const [wasPicked, end, ...claimed] = row
  return { rows: claimed[0] === null ? [] : [claimed], wasPicked, end: toPartEnd(end) }
}

function toPartEnd(end: readonly [lane: string, accountId: string] | null): PartEnd | null {
  return end === null ? null : { lane: end[0], accountId: end[1] }
}

function toValues(request: ClaimRequest, after: PartEnd): unknown[] {
  const { pool, workerId, leaseId, leaseUntil, now, engines, maxOvertakes } = request
  const hold = [pool, now.getTime(), leaseId, leaseUntil.getTime(), workerId, after.accountId]
  return isForAny(request)
    ? [...hold, anyEngineOf(request), after.lane]
    : [...hold, ...toOfferColumns(engines), maxOvertakes]
}

function toSharedValues(requests: readonly ClaimRequest[], after: PartEnd): unknown[] {
  const [{ pool, now }] = requests as readonly [ClaimRequest]
  const leases = requests.map(({ leaseId }) => leaseId)
  const ends = requests.map(({ leaseUntil }) => leaseUntil.getTime())
  const workers = requests.map(({ workerId }) => workerId)
  return [pool, now.getTime(), leases, ends, workers, after.accountId, requests.map(anyEngineOf), after.lane]
}

function anyEngineOf({ engines }: ClaimRequest): string | undefined {
  return engines.find(({ lanes }) => lanes === null)?.engineId
}

/** Engine id, position among the engines, lane and rank, each as a list. */
function toOfferColumns(engines: readonly EngineOffer[]): unknown[][] {
  const offers = engines.flatMap(({ engineId, lanes }, place) =>
    (lanes ?? []).map(({ lane, rank }) => [engineId, place, lane, rank] as const),
  )
  return [0, 1, 2, 3].map((column) => offers.map((offer) => offer[column]))
}

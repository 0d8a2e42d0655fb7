/**
 * Takes jobs of one pool for claims of the same moment. A single claim is one statement; several are two, one that reads what they
 * choose from and one that takes it. Where more accounts or lanes wait than one look shows, it goes through them part by part.
 */
import type { ChosenLane, EngineOffer } from '../../../../../../domain/engine/fleet/lane-offers.ts'
import { isStoreAway } from '../../../../../../domain/errors.ts'
import type { ClaimRequest } from '../../../../../../domain/jobs/job-store.ts'
import type { Connected } from '../../../database/connections.ts'
import { isDuplicateOf } from '../../../database/postgres-error.ts'
import { FIND_CLAIMED, TAKE_ANY, TAKE_FITTING, WAIT_FOR_ANY, WAIT_FOR_FITTING } from './claim-statements.ts'
import type { ClaimedRow } from './claimed-job.ts'
import { type Party, type PlannedClaim, planClaims, type QueueLook } from './plan-claims.ts'
import { LOOK_AT_ANY, LOOK_AT_FITTING, TAKE_PLANNED, WAIT_FOR_PLANNED } from './planned-statements.ts'
import type { End } from './queue-heads.ts'

const MAX_PARTS = 256
const MAX_RACES = 8
const MAX_TRIES = 3
// After an account was busy, its claimers are waited for this many times before claims pass over busy accounts again.
const PATIENT_CLAIMS = 16

/** A claim without what its engines offer, which depends on the claims of the same party before it. */
export interface Asking extends Omit<ClaimRequest, 'engines'> {
  readonly party: Claimer
}

/** One worker, whose claims share its slots. */
export class Claimer implements Party {
  readonly offersAfter: Party['offersAfter']
  readonly chosen: ChosenLane[] = []
  /** Whether its engines take everything, which does not depend on what is chosen. */
  readonly isForAny: boolean

  constructor(offersAfter: Party['offersAfter']) {
    this.offersAfter = offersAfter
    this.isForAny = isForAny(offersAfter([]))
  }
}

/** Where a part of the waiting accounts and lanes ends. */
interface PartEnd {
  readonly lane: string
  readonly accountId: string
}

const BEGINNING: PartEnd = { lane: '', accountId: '' }

function isBefore(one: PartEnd, other: PartEnd): boolean {
  return one.lane === other.lane ? one.accountId < other.accountId : one.lane < other.lane
}

/** What one look found, and what came of it. */
interface Taken {
  readonly rows: readonly ClaimedRow[]
  /** There was a job for an account with room: if no rows came, another process was quicker. null: not checked. */
  readonly wasPicked: boolean | null
  readonly end: PartEnd | null
  /** Those that may still find something, though they got nothing. */
  readonly left: readonly Asking[]
}

const NOTHING_TAKEN: Pick<Taken, 'rows' | 'left'> = { rows: [], left: [] }

interface Step {
  readonly after: PartEnd
  /** Waits for accounts that somebody else is counting on, instead of passing over them. */
  readonly isPatient: boolean
}

/**
 * One round through the parts of a pool; takes as many jobs as one look finds. Remembers, for each pool that is crowded, where the
 * next round goes on; and for each that had work the last time, how many rounds should wait for busy accounts. In a pool without
 * work the patient statement goes first, because it is the one that tells why there is nothing.
 */
export function createClaimRounds(
  relaxed: Connected,
): (askings: readonly Asking[]) => Promise<Pick<Taken, 'rows' | 'left'>> {
  const starts = new Map<string, PartEnd>()
  const patience = new Map<string, number>()

  function rememberStart(pool: string, end: PartEnd | null): void {
    if (end === null || end === BEGINNING) starts.delete(pool)
    else starts.set(pool, end)
  }

  return async (askings) => {
    const { pool } = askings[0] as Asking
    const take = askings.length > 1 ? takeSeveral : takeOne
    const start = starts.get(pool) ?? BEGINNING
    const patientClaims = patience.get(pool) ?? null
    let isPatient = patientClaims !== 0
    let after = start
    let races = 0
    for (let parts = 1; parts <= MAX_PARTS; ) {
      const { rows, wasPicked, end, left } = await take(relaxed, askings, { after, isPatient })
      if (rows.length > 0) {
        const wasBusy = isPatient && patientClaims === 0
        patience.set(pool, wasBusy ? PATIENT_CLAIMS : Math.max(0, (patientClaims ?? 0) - 1))
        rememberStart(pool, end)
        return { rows, left }
      }
      if (!isPatient && wasPicked !== false) {
        isPatient = true
        continue
      }
      if (wasPicked) {
        races += 1
        if (races === MAX_RACES) return NOTHING_TAKEN
        continue
      }
      // No account in this group has both room and a job: go on to the next group, and finally to those before the first one.
      const isRound = isBefore(after, start) && !(end !== null && isBefore(end, start))
      if (isRound || (end === null && start === BEGINNING)) {
        patience.delete(pool)
        starts.delete(pool)
        return NOTHING_TAKEN
      }
      after = end ?? BEGINNING
      parts += 1
    }
    // So many were looked at in vain that the rest is left to the next round.
    rememberStart(pool, after)
    return NOTHING_TAKEN
  }
}

/**
 * After a broken connection nobody knows whether something was taken: the leases find their jobs. A first try that the server is
 * still at work on cannot take a second job for the same lease: that a lease holds one job is kept by a unique index.
 */
async function takeSurely(relaxed: Connected, askings: readonly Asking[], take: () => Promise<Taken>): Promise<Taken> {
  for (let tries = 1; ; tries += 1) {
    try {
      if (tries > 1) {
        const rows = await relaxed.all(FIND_CLAIMED, [askings.map(({ leaseId }) => leaseId)])
        const held = rows.map(([, , ...row]) => row)
        if (held.length > 0) return { rows: held, wasPicked: true, end: null, left: withoutClaim(askings, held) }
      }
      return await take()
    } catch (error) {
      const mayHaveTaken = isStoreAway(error) || isDuplicateOf(error, 'job_held')
      if (!mayHaveTaken || tries === MAX_TRIES) throw error
    }
  }
}

function withoutClaim(askings: readonly Asking[], rows: readonly ClaimedRow[]): Asking[] {
  const claimed = new Set(rows.map(([leaseId]) => leaseId))
  return askings.filter(({ leaseId }) => !claimed.has(leaseId))
}

function takeOne(relaxed: Connected, [asking]: readonly Asking[], { after, isPatient }: Step): Promise<Taken> {
  if (asking === undefined) throw new Error('Somebody claims.')
  const engines = asking.party.offersAfter(asking.party.chosen)
  const values = toValues(asking, engines, after)
  return takeSurely(relaxed, [asking], async () => {
    if (!isPatient) {
      const rows = await relaxed.all(isForAny(engines) ? TAKE_ANY : TAKE_FITTING, values)
      const end = toPartEnd(rows[0]?.[0] ?? null)
      return { rows: rows.map(([, ...claimed]) => claimed), wasPicked: rows.length > 0 || null, end, left: [] }
    }
    const row = await relaxed.get(isForAny(engines) ? WAIT_FOR_ANY : WAIT_FOR_FITTING, values)
    if (row === undefined) throw new Error('A claim that waits is always answered with a row.')
    const [wasPicked, end, ...claimed] = row
    return { rows: claimed[0] === null ? [] : [claimed], wasPicked, end: toPartEnd(end), left: [] }
  })
}

function takeSeveral(relaxed: Connected, askings: readonly Asking[], { after, isPatient }: Step): Promise<Taken> {
  return takeSurely(relaxed, askings, async () => {
    const { end, ...queue } = await lookAt(relaxed, askings, after)
    const planned = planClaims(queue, askings)
    const sawAll = end === null && after === BEGINNING
    if (planned.length === 0) return { rows: [], wasPicked: false, end, left: [] }
    const rows = await relaxed.all(isPatient ? WAIT_FOR_PLANNED : TAKE_PLANNED, toPlannedValues(planned))
    // A claim for which nothing was planned, although the whole queue was read, need not try again.
    const hopeful = sawAll ? planned.map(({ asking }) => asking) : askings
    return { rows, wasPicked: true, end, left: withoutClaim(hopeful, rows) }
  })
}

async function lookAt(
  relaxed: Connected,
  askings: readonly Asking[],
  after: PartEnd,
): Promise<QueueLook & { readonly end: PartEnd | null }> {
  const [{ pool, now }] = askings as readonly [Asking]
  const offers = [...new Set(askings.map(({ party }) => party))].flatMap(({ offersAfter, chosen }) =>
    offersAfter(chosen),
  )
  const values = [pool, now.getTime(), askings.length, after.accountId, after.lane]
  const rows = isForAny(offers)
    ? await relaxed.all(LOOK_AT_ANY, values)
    : await relaxed.all(LOOK_AT_FITTING, [...values, [...new Set(offers.flatMap(toLanes))]])
  const [first] = rows
  if (first === undefined) throw new Error('A look is always answered with a row.')
  const accounts: [string, { running: number; served: number; maxRunning: number }][] = []
  const heads: QueueLook['heads'][number][] = []
  for (const [, , lane, accountId, running, served, maxRunning, jobs] of rows) {
    if (lane === null) continue
    accounts.push([accountId, { running, served, maxRunning }])
    heads.push({ lane, accountId, jobs: readJobs(jobs) })
  }
  return { end: toPartEnd(first[0]), lastTurn: first[1], heads, accounts: new Map(accounts) }
}

function readJobs(text: string): { priority: number; seq: number }[] {
  const numbers = text.split(' ').map(Number)
  return Array.from({ length: numbers.length / 2 }, (_, index) => ({
    priority: numbers[2 * index] as number,
    seq: numbers[2 * index + 1] as number,
  }))
}

function toLanes({ lanes }: EngineOffer): string[] {
  return (lanes ?? []).map(({ lane }) => lane)
}

function isForAny(engines: readonly EngineOffer[]): boolean {
  return engines.some(({ lanes }) => lanes === null)
}

function toPartEnd(end: End): PartEnd | null {
  return end === null ? null : { lane: end[0], accountId: end[1] }
}

function toValues(asking: Asking, engines: readonly EngineOffer[], after: PartEnd): unknown[] {
  const { pool, workerId, leaseId, leaseUntil, now, maxOvertakes } = asking
  const hold = [pool, now.getTime(), leaseId, leaseUntil.getTime(), workerId, after.accountId]
  const universal = engines.find(({ lanes }) => lanes === null)
  return universal === undefined
    ? [...hold, ...toOfferColumns(engines), maxOvertakes, after.lane]
    : [...hold, universal.engineId, after.lane]
}

/** Engine id, position among the engines, lane and rank, each as a list. */
function toOfferColumns(engines: readonly EngineOffer[]): unknown[][] {
  const offers = engines.flatMap(({ engineId, lanes }, place) =>
    (lanes ?? []).map(({ lane, rank }) => [engineId, place, lane, rank] as const),
  )
  return [0, 1, 2, 3].map((column) => offers.map((offer) => offer[column]))
}

function toPlannedValues(planned: readonly PlannedClaim<Asking>[]): unknown[] {
  const [{ asking: first }] = planned as readonly [PlannedClaim<Asking>]
  return [
    first.pool,
    first.now.getTime(),
    planned.map(({ accountId }) => accountId),
    planned.map(({ lane }) => lane),
    planned.map(({ engineId }) => engineId),
    planned.map(({ asking }) => asking.leaseId),
    planned.map(({ asking }) => asking.leaseUntil.getTime()),
    planned.map(({ asking }) => asking.workerId),
  ]
}

/**
 * Decides for several claims of one moment what each of them takes: what they would have taken one after the other. It follows the
 * order of the statements for a single claim, on what was read of the queue: the first jobs of every account in each lane. Which of
 * the jobs are really taken is decided by the statement that takes them.
 */
import type { ChosenLane, EngineOffer } from '../../../../../../domain/engine/fleet/lane-offers.ts'

/** What was read of the queue. */
export interface QueueLook {
  readonly heads: readonly Head[]
  readonly accounts: ReadonlyMap<string, AccountLoad>
  /** The number of the latest claim. */
  readonly lastTurn: number
}

/** The first jobs of an account in a lane, in the order in which they are taken; at least one. */
interface Head {
  readonly lane: string
  readonly accountId: string
  readonly jobs: readonly WaitingJob[]
}

interface WaitingJob {
  readonly priority: number
  readonly seq: number
}

interface AccountLoad {
  readonly running: number
  readonly served: number
  readonly maxRunning: number
}

/** A worker that claims; all its claims share its slots. */
export interface Party {
  readonly chosen: readonly ChosenLane[]
  offersAfter(chosen: readonly ChosenLane[]): readonly EngineOffer[]
}

interface Asking {
  readonly party: Party
  readonly maxOvertakes: number
}

export interface PlannedClaim<Item> extends ChosenLane {
  readonly asking: Item
  readonly accountId: string
}

interface Candidate {
  readonly head: HeadLeft
  readonly engineId: string
  readonly place: number
  readonly rank: number
}

export function planClaims<Item extends Asking>(look: QueueLook, askings: readonly Item[]): PlannedClaim<Item>[] {
  const queue = new QueueLeft(look)
  const chosenBy = new Map<Party, ChosenLane[]>()
  const planned: PlannedClaim<Item>[] = []
  for (const asking of askings) {
    const { party, maxOvertakes } = asking
    const chosen = chosenBy.get(party) ?? [...party.chosen]
    chosenBy.set(party, chosen)
    const engines = party.offersAfter(chosen)
    const universal = engines.find(({ lanes }) => lanes === null)
    const best = universal === undefined ? chooseFitting(queue, engines, maxOvertakes) : chooseAny(queue, universal)
    if (best === null) continue
    const { engineId } = best
    const { lane, accountId } = best.head
    queue.take(best.head)
    chosen.push({ engineId, lane })
    planned.push({ asking, engineId, lane, accountId })
  }
  return planned
}

interface AccountLeft {
  running: number
  served: number
  readonly maxRunning: number
}

class HeadLeft {
  readonly lane: string
  readonly accountId: string
  readonly account: AccountLeft
  readonly #jobs: readonly WaitingJob[]
  #taken = 0

  constructor({ lane, accountId, jobs }: Head, account: AccountLeft) {
    this.lane = lane
    this.accountId = accountId
    this.account = account
    this.#jobs = jobs
  }

  get isOpen(): boolean {
    return this.#taken < this.#jobs.length && this.account.running < this.account.maxRunning
  }

  get first(): WaitingJob {
    return this.#jobs[this.#taken] as WaitingJob
  }

  take(): void {
    this.#taken += 1
  }
}

/** The queue as the claims before have left it. */
class QueueLeft {
  readonly #heads: readonly HeadLeft[]
  #turn: number

  constructor({ heads, accounts, lastTurn }: QueueLook) {
    const left = new Map([...accounts].map(([id, load]) => [id, { ...load }]))
    this.#heads = heads.map((head) => new HeadLeft(head, left.get(head.accountId) as AccountLeft))
    this.#turn = lastTurn
  }

  open(): HeadLeft[] {
    return this.#heads.filter(({ isOpen }) => isOpen)
  }

  take(head: HeadLeft): void {
    head.take()
    this.#turn += 1
    head.account.running += 1
    head.account.served = this.#turn
  }
}

/** For an engine that takes everything: the account first, then its best job. */
function chooseAny(queue: QueueLeft, { engineId }: EngineOffer): Candidate | null {
  const open = queue.open()
  const next = open.reduce<HeadLeft | null>((best, head) => (best === null || isInTurn(head, best) ? head : best), null)
  if (next === null) return null
  const head = open
    .filter(({ accountId }) => accountId === next.accountId)
    .reduce((best, each) => (isSooner(each.first, best.first) ? each : best))
  return { head, engineId, place: 0, rank: 0 }
}

function isInTurn(one: HeadLeft, other: HeadLeft): boolean {
  const order =
    one.account.running - other.account.running ||
    one.account.served - other.account.served ||
    one.first.seq - other.first.seq
  return order < 0
}

function isSooner(one: WaitingJob, other: WaitingJob): boolean {
  return (other.priority - one.priority || one.seq - other.seq) < 0
}

/** For engines that serve certain lanes. */
function chooseFitting(queue: QueueLeft, engines: readonly EngineOffer[], maxOvertakes: number): Candidate | null {
  const open = queue.open()
  let best: Candidate | null = null
  for (const [place, { engineId, lanes }] of engines.entries()) {
    const ranks = new Map(lanes?.map(({ lane, rank }) => [lane, rank]))
    const fit = open.filter(({ lane }) => ranks.has(lane))
    for (const head of findNear(fit, maxOvertakes)) {
      const candidate = { head, engineId, place, rank: ranks.get(head.lane) as number }
      if (best === null || isBetter(candidate, best)) best = candidate
    }
  }
  return best
}

/** What priority, fair share and the bound of overtaking leave to one engine. */
function findNear(fit: readonly HeadLeft[], maxOvertakes: number): HeadLeft[] {
  const priorities = new Map<string, number>()
  for (const { accountId, first } of fit) {
    priorities.set(accountId, Math.max(first.priority, priorities.get(accountId) ?? Number.NEGATIVE_INFINITY))
  }
  const leastRunning = least(fit.map(({ account }) => account.running))
  const equal = fit.filter(({ account }) => account.running === leastRunning)
  const leastServed = least(equal.map(({ account }) => account.served))
  const near = equal.filter(
    ({ accountId, account, first }) =>
      first.priority === priorities.get(accountId) && account.served <= leastServed + maxOvertakes,
  )
  const oldest = least(near.map(({ first }) => first.seq))
  return near.filter(({ first }) => first.seq <= oldest + maxOvertakes)
}

function least(numbers: readonly number[]): number {
  return numbers.reduce((one, other) => Math.min(one, other), Number.POSITIVE_INFINITY)
}

function isBetter(one: Candidate, other: Candidate): boolean {
  const order =
    one.head.account.running - other.head.account.running ||
    one.rank - other.rank ||
    one.head.first.seq - other.head.first.seq ||
    one.place - other.place
  return order < 0
}

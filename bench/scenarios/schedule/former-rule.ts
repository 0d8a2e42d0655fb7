/**
 * The rule before shares, as a model in memory: the account with the fewest running jobs, then the one that was served longest ago, and
 * among those within 64 claims and 64 jobs of the oldest one whose weights are loaded.
 */
import type { Arrival, Costs, Replayed, ReplayedRun } from '../../../test/support/jobs/replay-load.ts'

interface Waiting {
  readonly arrival: Arrival
  readonly seq: number
}

interface Account {
  running: number
  served: number
  /** By lane, in submit order. */
  readonly waiting: Map<string, Waiting[]>
}

interface Server {
  loaded: string | null
  addition: string | null
  busy: ReplayedRun | null
}

const MAX_OVERTAKES = 64

export function replayFormerRule(arrivals: readonly Arrival[], count: number, costs: Costs): Replayed {
  const servers = Array.from({ length: count }, (): Server => ({ loaded: null, addition: null, busy: null }))
  const accounts = new Map<string, Account>()
  const runs: ReplayedRun[] = []
  let [nowMs, next, turn, switches] = [0, 0, 0, 0]

  function accountOf(id: string): Account {
    const known = accounts.get(id) ?? { running: 0, served: -1, waiting: new Map() }
    accounts.set(id, known)
    return known
  }

  function begin(server: Server, { arrival }: Waiting): void {
    const { lane, addition = null, runMs, accountId } = arrival
    const account = accountOf(accountId)
    const queue = account.waiting.get(lane) ?? []
    queue.shift()
    if (queue.length === 0) account.waiting.delete(lane)
    Object.assign(account, { running: account.running + 1, served: ++turn })
    const isSwitch = server.loaded !== lane
    if (isSwitch) switches += 1
    const loadsMore = addition !== null && (isSwitch || server.addition !== addition)
    const tookMs = runMs + (isSwitch ? costs.switchMs : 0) + (loadsMore ? costs.additionMs : 0)
    const run = { arrival, startedAtMs: nowMs, endedAtMs: nowMs + tookMs }
    Object.assign(server, { loaded: lane, addition, busy: run })
    runs.push(run)
  }

  function claim(): boolean {
    const free = servers.filter(({ busy }) => busy === null)
    const heads = [...accounts.values()].flatMap((account) =>
      [...account.waiting.values()].map(([head]) => ({ account, head: head as Waiting })),
    )
    if (free.length === 0 || heads.length === 0) return false
    const { near } = narrow(heads)
    const choices = free.flatMap((server) =>
      near.map(({ head }) => ({ server, head, isLoaded: server.loaded === head.arrival.lane })),
    )
    const [best] = choices.sort(
      (one, other) => Number(other.isLoaded) - Number(one.isLoaded) || one.head.seq - other.head.seq,
    )
    if (best === undefined) return false
    begin(best.server, best.head)
    return true
  }

  while (next < arrivals.length || servers.some(({ busy }) => busy !== null)) {
    const endsAt = Math.min(...servers.map(({ busy }) => busy?.endedAtMs ?? Number.POSITIVE_INFINITY))
    const arrival = arrivals[next]
    if (arrival !== undefined && arrival.atMs < endsAt) {
      nowMs = arrival.atMs
      const { waiting } = accountOf(arrival.accountId)
      waiting.set(arrival.lane, [...(waiting.get(arrival.lane) ?? []), { arrival, seq: next++ }])
    } else {
      nowMs = endsAt
      const server = servers.find(({ busy }) => busy?.endedAtMs === endsAt)
      if (server?.busy) accountOf(server.busy.arrival.accountId).running -= 1
      if (server !== undefined) server.busy = null
    }
    while (claim());
  }
  return { runs, switches, makespanMs: nowMs }
}

function narrow(heads: readonly { readonly account: Account; readonly head: Waiting }[]) {
  const running = Math.min(...heads.map(({ account }) => account.running))
  const idle = heads.filter(({ account }) => account.running === running)
  const served = Math.min(...idle.map(({ account }) => account.served))
  const due = idle.filter(({ account }) => account.served <= served + MAX_OVERTAKES)
  const oldest = Math.min(...due.map(({ head }) => head.seq))
  return { near: due.filter(({ head }) => head.seq <= oldest + MAX_OVERTAKES) }
}

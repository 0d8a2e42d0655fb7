/**
 * What was charged and refunded as events for a billing system, in the shape of CloudEvents 1.0. An event is an entry of the ledger: it has
 * the same id for ever, it is never changed, and there is one for each charge and each refund. They are read in the order of their
 * `sequence`, and who has read up to one asks for what comes after it: nothing is passed over, and nothing comes twice.
 */
import type { JsonObject } from '../../../lib/json/lossless-json.ts'
import { type Micros, writeUsd } from '../../../lib/text/usd.ts'
import type { ChargedWork } from './charges.ts'
import type { LedgerTop, UsageEntry, UsageQuery } from './ledger.ts'

interface UsagePage {
  readonly entries: readonly UsageEntry[]
  /** What to ask for next. */
  readonly after: number
  readonly isLast: boolean
}

export type ReadUsage = (query: Pick<UsageQuery, 'after' | 'limit'>) => Promise<UsagePage>

interface UsageDeps {
  readonly ledger: {
    usageEntries(query: UsageQuery): Promise<readonly UsageEntry[]>
    top(): Promise<LedgerTop>
  }
  /** Lets transactions that are under way end. */
  readonly pause: () => Promise<void>
}

// A transaction takes milliseconds; what a longer one wrote is read by a later call.
const MAX_LOOKS = 20

/**
 * An entry gets its number before its transaction commits, so that a later number may be seen first. What is told therefore ends where
 * every transaction that could add something below it is over.
 */
export function createReadUsage({ ledger, pause }: UsageDeps): ReadUsage {
  async function findEnd(): Promise<number> {
    const first = await ledger.top()
    let now = first
    for (let looks = 0; now.over < first.next; looks += 1) {
      if (looks === MAX_LOOKS) return 0
      await pause()
      now = await ledger.top()
    }
    return first.seq
  }

  return async ({ after, limit }) => {
    const upTo = await findEnd()
    const found = upTo <= after ? [] : await ledger.usageEntries({ after, upTo, limit: limit + 1 })
    const entries = found.slice(0, limit)
    return { entries, after: entries.at(-1)?.seq ?? after, isLast: found.length <= limit }
  }
}

/** What a job took is part of the entry that charged for it. */
export function toChargeMemo({ status, attempt, runMs }: { status: string; attempt: number; runMs: number }): string {
  return `${status}, attempt ${attempt}, ${runMs} ms`
}

function readRunMs(memo: string): number | null {
  const match = /, (\d{1,15}) ms$/.exec(memo)
  return match === null ? null : Number(match[1])
}

const SOURCE = 'atelier'

export function toUsageEvent(entry: UsageEntry): JsonObject {
  const { seq, accountId, kind, reference, charged, at, memo, model, pool, keyId, endpoint, endpointVersion, tag } =
    entry
  const work: ChargedWork = reference.startsWith('job:') ? 'job' : 'call'
  const isRefund = kind === 'refund'
  const runMs = work === 'job' && !isRefund ? readRunMs(memo) : null
  const measured = runMs === null ? { quantity: '1', unit: work } : { quantity: String(runMs / 1000), unit: 'second' }
  const amount: Micros = charged
  return {
    ...{ specversion: '1.0', id: `${reference}:${isRefund ? 'refund' : 'charge'}`, source: SOURCE },
    ...{ type: isRefund ? 'usage.refunded' : 'usage.charged', subject: accountId, time: at.toISOString() },
    ...{ datacontenttype: 'application/json', sequence: String(seq) },
    data: {
      ...{ account_id: accountId, kind: work, reference, model, pool, endpoint, endpoint_version: endpointVersion },
      ...{ key_id: keyId, tag, ...measured, price_usd: writeUsd(amount), price_micros: amount },
    },
  }
}

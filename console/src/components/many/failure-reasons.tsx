/** The failed jobs of a list by what went wrong, the most frequent first, with a way to run all that failed for one reason again. */
import { useState } from 'preact/hooks'
import type { BulkChoice, BulkScope } from '../../api/bulk.ts'
import type { Summary } from '../../api/summary.ts'
import { hrefOf } from '../../routes.ts'
import { formatCount } from '../../text/format.ts'
import { toMarkedText } from '../../text/marks.ts'
import { Words } from '../text.tsx'
import { ManyDialog } from './many-deeds.tsx'

interface Reason {
  readonly signature: string
  readonly code: string
  readonly classType: string | null
  readonly message: string
  readonly count: number
}

const SHOWN = 5
const MIN_JOBS = 2

/** Pure. Those of a single job are told in its row. */
export function toReasons(jobs: Iterable<Pick<Summary, 'status' | 'error'>>): readonly Reason[] {
  const reasons = new Map<string, Reason>()
  for (const { status, error } of jobs) {
    if (status !== 'failed' || error === null) continue
    const { signature, code, class_type: classType, message } = error
    const count = (reasons.get(signature)?.count ?? 0) + 1
    reasons.set(signature, { signature, code, classType, message, count })
  }
  return [...reasons.values()].filter(({ count }) => count >= MIN_JOBS).sort((a, b) => b.count - a.count)
}

interface FailureReasonsProps {
  readonly scope: BulkScope
  readonly jobs: readonly Summary[]
  /** There are further jobs that are not loaded. */
  readonly hasMore: boolean
  /** The page whose list it is, and the filter that it has. */
  readonly base: string
  readonly filter: Readonly<Record<string, string>>
  readonly account?: string | null
}

export function FailureReasons({ scope, jobs, hasMore, base, filter, account = null }: FailureReasonsProps) {
  const [chosen, setChosen] = useState<Reason | null>(null)
  const reasons = toReasons(jobs).slice(0, SHOWN)
  if (reasons.length === 0) return null
  const narrowed = ({ signature, code }: Reason) => ({ ...filter, status: 'failed', code, failure: signature })
  const toChoice = (reason: Reason): BulkChoice => ({ of: { filter: narrowed(reason) }, account })
  const hrefTo = (reason: Reason) =>
    hrefOf(`${base}?${new URLSearchParams({ ...narrowed(reason), ...(account !== null && { account }) })}`)
  return (
    <section class="reasons" aria-label="Why they failed">
      <ul class="plain-list">
        {reasons.map((reason) => (
          <li key={reason.signature}>
            <a class="chip failed" href={hrefTo(reason)}>
              <Words text={reason.code} /> ×{formatCount(reason.count)}
              {hasMore && <span title="of those that are loaded here">+</span>}
            </a>
            <span class="failure-text">
              {reason.classType !== null && <Words text={`${reason.classType}: `} />}
              <Words text={reason.message} />
            </span>
            <button
              type="button"
              class="button small"
              aria-label={`Run all again that failed with ${toMarkedText(reason.code)}: ${toMarkedText(reason.message)}`}
              onClick={() => setChosen(reason)}
            >
              Run again…
            </button>
          </li>
        ))}
      </ul>
      {chosen !== null && (
        <ManyDialog scope={scope} choice={toChoice(chosen)} kind="rerun" onClose={() => setChosen(null)} />
      )}
    </section>
  )
}

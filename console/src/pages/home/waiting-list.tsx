import { readFilter } from '../../api/filter.ts'
import type { Summary } from '../../api/summary.ts'
import { Ago } from '../../components/figures.tsx'
import { Icon } from '../../components/icon.tsx'
import { jobName } from '../../components/jobs/job-name.tsx'
import { Words } from '../../components/words.tsx'
import { hrefOf } from '../../routes.ts'
import { cancelOne, cancelWaiting } from '../../state/deeds.ts'
import { formatCount } from '../../text/format.ts'
import { toMarkedText } from '../../text/marks.ts'

const SHOWN = 6

/** The head of the queue, in its order. */
export function WaitingList({ waiting, total }: { readonly waiting: readonly Summary[]; readonly total: number }) {
  const shown = waiting.slice(0, SHOWN)
  const rest = Math.max(0, total - shown.length)
  return (
    <section class="home-waiting" aria-labelledby="home-waiting">
      <div class="section-head">
        <h2 id="home-waiting">Waiting</h2>
        {total > 0 && (
          <button
            type="button"
            class="button small"
            onClick={() => void cancelWaiting(readFilter(new URLSearchParams('status=queued')))}
          >
            Cancel all that wait…
          </button>
        )}
      </div>
      {shown.length === 0 && <p class="dim">Nothing waits.</p>}
      <ol class="plain-list">
        {shown.map((job, index) => (
          <li key={job.id}>
            <span class="number dim">{job.queue_position ?? index + 1}</span>
            <a href={hrefOf(`/jobs/${job.id}`)}>
              <Words text={jobName(job)} />
            </a>
            <span class="dim">
              <Ago at={job.created_at} />
            </span>
            <button
              type="button"
              class="icon-button"
              aria-label={`Cancel ${toMarkedText(jobName(job))}`}
              title="Cancel"
              onClick={() => void cancelOne(job.id)}
            >
              <Icon name="cross" />
            </button>
          </li>
        ))}
      </ol>
      {rest > 0 && (
        <a class="dim" href={hrefOf('/jobs?status=queued&sort=oldest')}>
          … {formatCount(rest)} more
        </a>
      )}
    </section>
  )
}

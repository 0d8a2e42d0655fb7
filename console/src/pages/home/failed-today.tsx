import { Ago } from '../../components/figures.tsx'
import { Icon } from '../../components/icon.tsx'
import { jobName } from '../../components/jobs/job-name.tsx'
import { Words } from '../../components/words.tsx'
import { hrefOf } from '../../routes.ts'
import { formatCount } from '../../text/format.ts'
import type { HomeView } from './home-state.ts'

const SHOWN = 5

/** Failures of today: how many of which kind, and the newest with what they say. */
export function FailedToday({ view, total }: { readonly view: HomeView; readonly total: number }) {
  if (view.failed.length === 0) return null
  return (
    <section aria-labelledby="home-failed">
      <div class="section-head">
        <h2 id="home-failed">Failed today</h2>
        <span class="chips">
          {view.codes.map(({ code, count }) => (
            <a
              key={code}
              class="chip failed"
              href={hrefOf(`/jobs?status=failed&since=today&code=${encodeURIComponent(code)}`)}
            >
              {code} ×{formatCount(count)}
              {total > view.failed.length && <span title="of the newest that are loaded here">+</span>}
            </a>
          ))}
        </span>
      </div>
      <ul class="plain-list failures">
        {view.failed.slice(0, SHOWN).map((job) => (
          <li key={job.id}>
            <span data-status="failed">
              <Icon name="cross" />
            </span>
            <a href={hrefOf(`/jobs/${job.id}`)}>
              <Words text={jobName(job)} />
            </a>
            <span class="failure-text">
              <Words text={job.error?.message ?? ''} />
            </span>
            <span class="dim">
              <Ago at={job.completed_at ?? job.created_at} />
            </span>
          </li>
        ))}
      </ul>
      {total > SHOWN && (
        <a class="dim" href={hrefOf('/jobs?status=failed&since=today')}>
          … {formatCount(total - SHOWN)} more
        </a>
      )}
    </section>
  )
}

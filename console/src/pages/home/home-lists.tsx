/** What the home page lists: jobs that run, wait and failed today, and the newest results. */
import { readFilter } from '../../api/filter.ts'
import { listOutputs, zipHref } from '../../api/jobs.ts'
import type { Summary } from '../../api/summary.ts'
import { Icon } from '../../components/icon.tsx'
import { jobName, jobTrail, Progress } from '../../components/jobs/job-parts.tsx'
import { Thumb } from '../../components/media/media.tsx'
import { Loaded, Skeleton } from '../../components/state.tsx'
import { Ago, Duration, Words } from '../../components/text.tsx'
import { BASE, hrefOf } from '../../routes.ts'
import { cancelOne, cancelWaiting } from '../../state/deeds.ts'
import { useJobLive } from '../../state/job-live.ts'
import { counts } from '../../state/live/live.ts'
import { useReloadOn, useResource } from '../../state/resource.ts'
import { formatCount } from '../../text/format.ts'
import { toMarkedText } from '../../text/marks.ts'

export interface HomeView {
  readonly running: readonly Summary[]
  readonly waiting: readonly Summary[]
  /** Failed, of those submitted since midnight, as the list behind the figure has them; newest first. */
  readonly failed: readonly Summary[]
  readonly codes: readonly { readonly code: string; readonly count: number }[]
}

/** What Home shows, computed from the jobs that this page knows. Pure. */
export function toHomeView(jobs: Iterable<Summary>, since: number): HomeView {
  const running: Summary[] = []
  const waiting: Summary[] = []
  const failed: Summary[] = []
  for (const job of jobs) {
    if (job.status === 'running' || job.status === 'canceling') running.push(job)
    else if (job.status === 'queued') waiting.push(job)
    else if (job.status === 'failed' && Date.parse(job.created_at) >= since) failed.push(job)
  }
  running.sort((a, b) => compare(a.started_at ?? a.created_at, b.started_at ?? b.created_at) || compare(a.id, b.id))
  waiting.sort((a, b) => place(a) - place(b) || b.priority - a.priority || compare(a.created_at, b.created_at))
  failed.sort((a, b) => compare(b.completed_at ?? b.created_at, a.completed_at ?? a.created_at))
  const counted = new Map<string, number>()
  for (const { error } of failed) {
    const code = error?.code ?? 'unknown'
    counted.set(code, (counted.get(code) ?? 0) + 1)
  }
  const codes = [...counted].map(([code, count]) => ({ code, count })).sort((a, b) => b.count - a.count)
  return { running, waiting, failed, codes }
}

function place({ queue_position }: Summary): number {
  return queue_position ?? Number.MAX_SAFE_INTEGER
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

const WAITING_SHOWN = 6

/** The head of the queue, in its order. */
export function WaitingList({ waiting, total }: { readonly waiting: readonly Summary[]; readonly total: number }) {
  const shown = waiting.slice(0, WAITING_SHOWN)
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

const FAILED_SHOWN = 5

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
        {view.failed.slice(0, FAILED_SHOWN).map((job) => (
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
      {total > FAILED_SHOWN && (
        <a class="dim" href={hrefOf('/jobs?status=failed&since=today')}>
          … {formatCount(total - FAILED_SHOWN)} more
        </a>
      )}
    </section>
  )
}

const RESULTS_SHOWN = 12

/** The newest outputs; asked again when a job has succeeded. */
export function NewestResults() {
  const resource = useResource('newest results', (signal) =>
    listOutputs(new URLSearchParams({ limit: String(RESULTS_SHOWN) }), signal),
  )
  useReloadOn(counts.value?.succeeded, resource.reload)
  return (
    <section aria-labelledby="home-results">
      <div class="section-head">
        <h2 id="home-results">Newest results</h2>
        <a href={hrefOf('/gallery')}>Gallery →</a>
      </div>
      <Loaded resource={resource} skeleton={<Skeleton rows={6} kind="tile" />}>
        {({ outputs }) =>
          outputs.length === 0 ? (
            <p class="dim">What jobs make is shown here.</p>
          ) : (
            <ul class="tiles">
              {outputs.map(({ asset_id, job_id, job_title, name, content_type }) => (
                <li key={asset_id}>
                  <a href={hrefOf(`/jobs/${job_id}#result`)} title={toMarkedText(job_title || name)}>
                    <Thumb
                      assetId={asset_id}
                      type={content_type}
                      alt={toMarkedText(`${name} of ${job_title}`)}
                      width={256}
                    />
                  </a>
                  <span class="tile-deeds">
                    <a
                      class="icon-button"
                      href={hrefOf(`/run?from=${job_id}`)}
                      aria-label={toMarkedText(`Run ${job_title || name} again`)}
                      title="Run again"
                    >
                      <Icon name="again" />
                    </a>
                    <a
                      class="icon-button"
                      href={zipHref(BASE, [job_id])}
                      download
                      aria-label={toMarkedText(`Download all results of ${job_title || name}`)}
                      title="Download all results of this job"
                    >
                      <Icon name="down" />
                    </a>
                  </span>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </section>
  )
}

/** A job that runs: what it makes at the moment, at which node it is, how far, and how to stop it. */
export function RunCard({ job, hasPreview }: { readonly job: Summary; readonly hasPreview: boolean }) {
  const preview = useJobLive(hasPreview ? job.id : null)
  const name = jobName(job)
  const marked = toMarkedText(name)
  return (
    <article class="run-card">
      <a class="run-card-picture" href={hrefOf(`/jobs/${job.id}`)} aria-label={`Open ${marked}`}>
        {preview.value === null ? (
          <span class="run-card-wait" data-attempt={job.attempt}>
            <Icon name="spark" />
          </span>
        ) : (
          <img src={preview.value} alt={`Preview of ${marked}`} />
        )}
      </a>
      <div class="run-card-body">
        <a class="run-card-name" href={hrefOf(`/jobs/${job.id}`)}>
          <Words text={name} />
        </a>
        <p class="dim run-card-step">
          {job.status === 'canceling' ? 'canceling' : <Words text={jobTrail(job)} />} ·{' '}
          <Duration from={job.started_at} to={null} />
        </p>
        <div class="run-card-foot">
          <Progress value={job.value} label={`Progress of ${marked}`} run={`${job.id} ${job.attempt}`} />
          <span class="number dim">{job.value === null ? '' : `${Math.floor(job.value * 100)} %`}</span>
          <button
            type="button"
            class="icon-button"
            aria-label={`Cancel ${marked}`}
            title="Cancel"
            disabled={job.status === 'canceling'}
            onClick={() => void cancelOne(job.id)}
          >
            <Icon name="cross" />
          </button>
        </div>
      </div>
    </article>
  )
}

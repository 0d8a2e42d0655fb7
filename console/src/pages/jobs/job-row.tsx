/** One job in a line. It hears of its own job alone, so only the rows that changed are drawn again. */
import { useComputed } from '@preact/signals'
import type { Summary } from '../../api/summary.ts'
import { jobName, jobTrail, MetaChips, Progress } from '../../components/jobs/job-parts.tsx'
import { Thumb } from '../../components/media/media.tsx'
import { StatusPill } from '../../components/state.tsx'
import { Ago, Duration, Money, shortId, Words } from '../../components/text.tsx'
import { Boundary, RawJson } from '../../lazy.tsx'
import { hrefOf } from '../../routes.ts'
import { isGone, jobOf } from '../../state/live/live.ts'
import { toMarkedText } from '../../text/marks.ts'

interface JobRowProps {
  readonly id: string
  readonly isChosen: boolean
  /** The same function at every drawing: a row whose properties are the same is left as it is. */
  readonly onChoose: (id: string, isRange: boolean) => void
}

/** A job that cannot be drawn is shown as it came. */
export function JobRow(props: JobRowProps) {
  const { id } = props
  const { value: job } = useComputed(() => jobOf(id))
  return (
    <Boundary
      mark={`${id} ${job?.version}`}
      instead={() => (
        <div role="cell" class="cell cell-name">
          <RawJson value={job} />
        </div>
      )}
    >
      <JobCells {...props} job={job} />
    </Boundary>
  )
}

function JobCells({ id, isChosen, onChoose, job }: JobRowProps & { readonly job: Summary | undefined }) {
  if (job === undefined)
    return (
      <div role="cell" class="cell cell-name dim">
        {isGone(id) ? 'removed' : <a href={hrefOf(`/jobs/${id}`)}>{shortId(id)}</a>}
      </div>
    )
  const name = jobName(job)
  const isRunning = job.status === 'running' || job.status === 'canceling'
  return (
    <>
      <div role="cell" class="cell cell-select">
        <label class="check-target">
          <input
            type="checkbox"
            checked={isChosen}
            onClick={(event) => {
              onChoose(id, event.shiftKey)
              // The end of a range is chosen, also where its box was full before this click.
              if (event.shiftKey) event.currentTarget.checked = true
            }}
          />
          <span class="unseen">Select {toMarkedText(name)}</span>
        </label>
      </div>
      <div role="cell" class="cell cell-status">
        <StatusPill status={job.status} />
      </div>
      <div role="cell" class="cell cell-name">
        {job.thumb !== null && <Thumb assetId={job.thumb.asset_id} type={job.thumb.type} alt="" width={64} />}
        <a href={hrefOf(`/jobs/${id}`)}>
          <Words text={name} />
        </a>
        {job.reused_from !== null && <span class="chip quiet">reused</span>}
        <MetaChips metadata={job.metadata} />
      </div>
      <div role="cell" class="cell cell-trail" title={toMarkedText(job.error?.message ?? '')}>
        <span class={job.status === 'failed' ? 'failed-text' : 'dim'}>
          <Words text={jobTrail(job)} />
        </span>
        {isRunning && (
          <Progress value={job.value} label={`Progress of ${toMarkedText(name)}`} run={`${id} ${job.attempt}`} />
        )}
        {job.status === 'failed' && job.error !== null && (
          <span class="dim trail-message">
            <Words text={job.error.message} />
          </span>
        )}
      </div>
      <div role="cell" class="cell cell-time">
        <Duration from={job.started_at} to={isRunning ? null : (job.completed_at ?? job.started_at)} />
      </div>
      <div role="cell" class="cell cell-cost">
        <Money usd={job.cost_usd} />
      </div>
      <div role="cell" class="cell cell-made dim">
        <Ago at={job.created_at} />
      </div>
    </>
  )
}

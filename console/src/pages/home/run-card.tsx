/** A job that runs: what it makes at the moment, at which node it is, how far, and how to stop it. */
import type { Summary } from '../../api/summary.ts'
import { Duration } from '../../components/figures.tsx'
import { Icon } from '../../components/icon.tsx'
import { jobName, jobTrail } from '../../components/jobs/job-name.tsx'
import { Progress } from '../../components/jobs/progress.tsx'
import { Words } from '../../components/words.tsx'
import { hrefOf } from '../../routes.ts'
import { cancelOne } from '../../state/deeds.ts'
import { useJobLive } from '../../state/job-live.ts'
import { toMarkedText } from '../../text/marks.ts'

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

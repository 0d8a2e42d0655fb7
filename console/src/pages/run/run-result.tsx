/** What the runs of this form came to: the newest with its picture, the earlier ones to look back at. */
import { useState } from 'preact/hooks'
import { getJob } from '../../api/jobs.ts'
import { isEnded } from '../../api/summary.ts'
import { Duration } from '../../components/figures.tsx'
import { jobTrail } from '../../components/jobs/job-name.tsx'
import { Progress } from '../../components/jobs/progress.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Media } from '../../components/media/media.tsx'
import { Skeleton } from '../../components/skeleton.tsx'
import { StatusPill } from '../../components/status-pill.tsx'
import { Words } from '../../components/words.tsx'
import { hrefOf } from '../../routes.ts'
import { useJobLive } from '../../state/job-live.ts'
import { jobOf, takeSnapshot } from '../../state/live/live.ts'
import { useResource } from '../../state/resource.ts'

export function RunResult({ ids }: { readonly ids: readonly string[] }) {
  const [chosen, setChosen] = useState<string | null>(null)
  if (ids.length === 0)
    return (
      <aside class="run-result card" aria-label="Result">
        <p class="dim">What it makes is shown here.</p>
      </aside>
    )
  const id = chosen !== null && ids.includes(chosen) ? chosen : ids[0]
  return (
    <aside class="run-result card" aria-label="Result">
      <OneResult key={id} id={id} />
      {ids.length > 1 && (
        <div class="segments" role="group" aria-label="Runs of this form">
          {ids.map((other, index) => (
            <button key={other} type="button" aria-pressed={other === id} onClick={() => setChosen(other)}>
              {ids.length - index}
            </button>
          ))}
        </div>
      )}
    </aside>
  )
}

function OneResult({ id }: { readonly id: string }) {
  const summary = jobOf(id)
  const isOver = summary !== undefined && isEnded(summary.status)
  const resource = useResource(`result ${id} ${isOver ? 'ended' : 'open'}`, async (signal) => {
    const job = await getJob(id, signal)
    takeSnapshot([job])
    return job
  })
  const preview = useJobLive(isOver ? null : id, { onChange: resource.reload })
  return (
    <Loaded resource={resource} skeleton={<Skeleton rows={4} />}>
      {(detail) => {
        const job = summary ?? detail
        return (
          <div class="stack" role="status">
            <p class="row">
              <StatusPill status={job.status} />
              <Duration from={job.started_at} to={job.completed_at} />
              <a href={hrefOf(`/jobs/${id}`)}>Open the job</a>
            </p>
            {!isEnded(job.status) && (
              <>
                <p class="dim">
                  <Words text={jobTrail({ ...detail, ...summary })} />
                </p>
                <Progress value={job.value} label="Progress" run={`${id} ${job.attempt}`} />
                {preview.value !== null && <img class="media" src={preview.value} alt="What it looks like so far" />}
              </>
            )}
            {detail.error !== null && (
              <p class="failed-text">
                <Words text={detail.error.message} />
              </p>
            )}
            {detail.outputs_list.map((output) => (
              <Media key={output.asset_id} item={output} />
            ))}
          </div>
        )
      }}
    </Loaded>
  )
}

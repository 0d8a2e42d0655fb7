/** What the runs of this form came to: the newest with its picture, the earlier ones to look back at. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { getJob } from '../../api/jobs.ts'
import { isCancelable, isEnded } from '../../api/summary.ts'
import { jobTrail, Progress } from '../../components/jobs/job-parts.tsx'
import { downloadUrl, Media, Thumb } from '../../components/media/media.tsx'
import { EmptyState, Loaded, Skeleton, StatusPill, statusWord } from '../../components/state.tsx'
import { Duration, Words } from '../../components/text.tsx'
import { hrefOf } from '../../routes.ts'
import { cancelOne } from '../../state/deeds.ts'
import { useJobLive } from '../../state/job-live.ts'
import { jobOf, takeSnapshot } from '../../state/live/live.ts'
import { useResource } from '../../state/resource.ts'
import { toMarkedText } from '../../text/marks.ts'

interface RunResultProps {
  /** Newest first. */
  readonly ids: readonly string[]
  /** What the jobs of the last run are marked with, where it made several. */
  readonly batch: string | null
  /** Further words on the one that is shown. */
  readonly beneath?: (id: string) => ComponentChildren
}

const SHOWN = 24

export function RunResult({ ids, batch, beneath }: RunResultProps) {
  const [chosen, setChosen] = useState<string | null>(null)
  if (ids.length === 0)
    return (
      <EmptyState title="Nothing made yet">
        <p class="dim">Run it: what it makes is shown here, while it is made.</p>
      </EmptyState>
    )
  const id = chosen !== null && ids.includes(chosen) ? chosen : ids[0]
  return (
    <>
      <OneResult key={id} id={id} />
      {beneath?.(id)}
      {ids.length > 1 && (
        <div class="run-history" role="group" aria-label="Runs of this form">
          {ids.slice(0, SHOWN).map((other, index) => (
            <HistoryTile
              key={other}
              id={other}
              number={ids.length - index}
              isChosen={other === id}
              onChoose={() => setChosen(other)}
            />
          ))}
        </div>
      )}
      {batch !== null && <a href={hrefOf(`/jobs?meta.batch=${batch}`)}>All of this run in the list →</a>}
    </>
  )
}

interface HistoryTileProps {
  readonly id: string
  readonly number: number
  readonly isChosen: boolean
  readonly onChoose: () => void
}

function HistoryTile({ id, number, isChosen, onChoose }: HistoryTileProps) {
  const job = jobOf(id)
  const status = job?.status ?? 'queued'
  return (
    <button
      type="button"
      class="history-tile"
      aria-pressed={isChosen}
      aria-label={`Run ${number}, ${statusWord(status).toLowerCase()}`}
      onClick={onChoose}
    >
      {job?.thumb != null ? (
        <Thumb assetId={job.thumb.asset_id} type={job.thumb.type} alt="" width={64} />
      ) : (
        <span class="number" data-status={status}>
          {number}
        </span>
      )}
    </button>
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
                <div class="row">
                  <Progress value={job.value} label="Progress" run={`${id} ${job.attempt}`} />
                  <span class="number">{Math.floor((job.value ?? 0) * 100)} %</span>
                  {isCancelable(job.status) && (
                    <button type="button" class="button small danger" onClick={() => void cancelOne(id)}>
                      Cancel
                    </button>
                  )}
                </div>
                {preview.value !== null && <img class="media" src={preview.value} alt="What it looks like so far" />}
              </>
            )}
            {detail.error !== null && (
              <p class="failed-text">
                <Words text={detail.error.message} />
              </p>
            )}
            {detail.outputs_list.map((output) => (
              <figure key={output.asset_id} class="model-file">
                <Media item={output} />
                <figcaption class="dim">
                  <a href={downloadUrl(output.asset_id)} download={toMarkedText(output.name)}>
                    Download <Words text={output.name} />
                  </a>
                </figcaption>
              </figure>
            ))}
          </div>
        )
      }}
    </Loaded>
  )
}

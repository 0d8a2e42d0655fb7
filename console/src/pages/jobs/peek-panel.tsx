/** The job beside its list: enough to know whether it is the one, and what to do with it. */
import { getJob } from '../../api/jobs.ts'
import { isCancelable } from '../../api/summary.ts'
import { Icon } from '../../components/icon.tsx'
import { jobName, MetaChips } from '../../components/jobs/job-parts.tsx'
import { Media } from '../../components/media/media.tsx'
import { Loaded, Skeleton, StatusPill } from '../../components/state.tsx'
import { Duration, Id, KeyValue, Money, Words } from '../../components/text.tsx'
import { hrefOf, setQuery } from '../../routes.ts'
import { cancelOne } from '../../state/deeds.ts'
import { jobOf } from '../../state/live/live.ts'
import { useResource } from '../../state/resource.ts'
import { waitReason } from '../job/wait-box.tsx'

interface PeekPanelProps {
  readonly id: string
  readonly onMove: (by: 1 | -1) => void
}

export function PeekPanel({ id, onMove }: PeekPanelProps) {
  const version = jobOf(id)?.version ?? 0
  const isEnded = jobOf(id)?.completed_at != null
  // Asked again when it has ended: until then the row's own news are enough.
  const resource = useResource(`peek ${id} ${isEnded ? version : 'open'}`, (signal) => getJob(id, signal))
  return (
    <aside class="peek" aria-label="Peek">
      <div class="peek-head">
        <button type="button" class="icon-button" aria-label="Previous" title="Previous [" onClick={() => onMove(-1)}>
          <Icon name="left" />
        </button>
        <button type="button" class="icon-button" aria-label="Next" title="Next ]" onClick={() => onMove(1)}>
          <Icon name="right" />
        </button>
        <span class="top-line-space" />
        <button
          type="button"
          class="icon-button"
          aria-label="Close peek"
          title="Esc"
          onClick={() => setQuery({ peek: null }, { replace: true })}
        >
          <Icon name="cross" />
        </button>
      </div>
      <Loaded resource={resource} skeleton={<Skeleton rows={4} />}>
        {(job) => {
          const live = jobOf(id)
          const status = live?.status ?? job.status
          const [first] = job.outputs_list
          return (
            <div class="stack">
              {first !== undefined && <Media item={first} />}
              <h2 class="peek-title">
                <Words text={jobName(job)} />
              </h2>
              <p>
                <StatusPill status={status} /> <Duration from={job.started_at} to={job.completed_at} />
              </p>
              {job.error !== null && (
                <p class="failed-text">
                  <Words text={job.error.message} />
                </p>
              )}
              {job.wait !== null && <p>{waitReason(job.wait)}</p>}
              <MetaChips metadata={job.metadata} />
              <KeyValue
                pairs={[
                  ['Id', <Id key="id" id={job.id} />],
                  ['Engine', job.engine],
                  ['Cost', <Money key="cost" usd={job.cost_usd} />],
                  ['Outputs', String(job.outputs)],
                ]}
              />
              <div class="row">
                <a class="button primary" href={hrefOf(`/jobs/${id}`)}>
                  Open
                </a>
                <a class="button" href={hrefOf(`/run?from=${id}`)}>
                  Run again…
                </a>
                {isCancelable(status) && (
                  <button type="button" class="button danger" onClick={() => void cancelOne(id)}>
                    Cancel
                  </button>
                )}
              </div>
            </div>
          )
        }}
      </Loaded>
    </aside>
  )
}

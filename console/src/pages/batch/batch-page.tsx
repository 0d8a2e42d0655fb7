/** Jobs that came in one request: how far they are together, each with its state, an end to all, and what they made as one file. */
import { useEffect } from 'preact/hooks'
import { type Batch, type BatchItem, batchZip, cancelBatch, getBatch } from '../../api/jobs.ts'
import { JOB_STATUSES } from '../../api/summary.ts'
import { jobName, jobTrail, Progress } from '../../components/jobs/job-parts.tsx'
import { confirm } from '../../components/overlay/dialog.tsx'
import { Loaded, Skeleton, StatusPill, statusWord } from '../../components/state.tsx'
import { VirtualGrid } from '../../components/table/virtual-grid.tsx'
import { Ago, Id, Moment, shortId, Words } from '../../components/text.tsx'
import { BASE, hrefOf } from '../../routes.ts'
import { tell } from '../../state/deeds.ts'
import { greetings, jobOf, onJobChange, polls } from '../../state/live/live.ts'
import { type Resource, useReloadOn, useResource } from '../../state/resource.ts'
import { formatCount, plural } from '../../text/format.ts'

const ROW_PX = 44

export function BatchPage({ id = '' }: Readonly<Record<string, string>>) {
  const resource = useBatch(id)
  return (
    <section class="page">
      <a class="dim back" href={hrefOf('/jobs')}>
        ← Jobs
      </a>
      {resource.data.value === null && <h1 class="unseen">Batch</h1>}
      <Loaded resource={resource} skeleton={<Skeleton rows={8} />}>
        {(batch) => (
          <>
            <BatchHead batch={batch} onChange={resource.reload} />
            <VirtualGrid
              label="Jobs of this batch"
              count={batch.items.length}
              keyOf={(index) => String(index)}
              rowHeight={ROW_PX}
            >
              {(index) => <Item item={batch.items[index]} />}
            </VirtualGrid>
          </>
        )}
      </Loaded>
    </section>
  )
}

function BatchHead({ batch, onChange }: { readonly batch: Batch; readonly onChange: () => void }) {
  const { id, counts, progress, accepted, refused } = batch
  const open = counts.queued + counts.running
  async function cancel(): Promise<void> {
    const isMeant = await confirm({
      title: `Cancel ${plural(open, 'job')}?`,
      text: 'Jobs that wait leave the queue. Jobs that run are stopped; what they saved so far is kept.',
      deed: `Cancel ${plural(open, 'job')}`,
      isDangerous: true,
    })
    if (!isMeant) return
    await tell(() => cancelBatch(id))
    onChange()
  }
  return (
    <header class="job-head">
      <div class="section-head">
        <h1>Batch of {plural(accepted, 'job')}</h1>
        <div class="chips">
          {counts.succeeded > 0 && (
            <a class="button small" href={batchZip(BASE, id)} download>
              Download all
            </a>
          )}
          {open > 0 && (
            <button type="button" class="button small danger" onClick={() => void cancel()}>
              Cancel {formatCount(open)}…
            </button>
          )}
        </div>
      </div>
      <p class="job-line">
        {JOB_STATUSES.filter((status) => counts[status] > 0).map((status) => (
          <span key={status} class="number">
            {formatCount(counts[status])} {statusWord(status).toLowerCase()}
          </span>
        ))}
        {refused > 0 && <span class="number">{formatCount(refused)} refused</span>}
        <span class="dim">
          submitted <Ago at={batch.created_at} />, kept until <Moment at={batch.expires_at} />
        </span>
        <Id id={id} label="batch id" />
      </p>
      <div class="job-progress">
        <Progress value={progress} label="Progress of the batch" run={id} />
        <span class="number">{Math.floor(progress * 100)} %</span>
      </div>
    </header>
  )
}

/** As the stream tells of its job, where it did. */
function Item({ item: { index, job_id: jobId, status, error } }: { readonly item: BatchItem }) {
  const job = jobId === null ? undefined : jobOf(jobId)
  const shown = job?.status ?? status
  return (
    <>
      <span class="number dim">{index + 1}</span>
      {shown === null ? (
        <span class="dim">{jobId === null ? 'refused' : 'removed'}</span>
      ) : (
        <StatusPill status={shown} />
      )}
      {jobId !== null && shown !== null && (
        <a href={hrefOf(`/jobs/${jobId}`)}>
          <Words text={job === undefined ? shortId(jobId) : jobName(job)} />
        </a>
      )}
      {job !== undefined && (
        <span class="dim">
          <Words text={jobTrail(job)} />
        </span>
      )}
      {error !== null && (
        <span class="failed-text">
          <Words text={error.message} />
        </span>
      )}
    </>
  )
}

const AGAIN_MS = 1000

/** One batch, asked for again when something of its jobs changed, at most once a second. */
function useBatch(id: string): Resource<Batch> {
  const batch = useResource(`batch ${id}`, (signal) => getBatch(id, signal))
  useEffect(() => {
    let due: ReturnType<typeof setTimeout> | undefined
    const unhear = onJobChange((change) => {
      if (change.kind === 'snapshot') return
      const changed = change.kind === 'gone' ? change.id : change.job.id
      // Before the first answer any job may be one of the batch.
      if (batch.data.peek()?.items.some((item) => item.job_id === changed) === false) return
      due ??= setTimeout(() => {
        due = undefined
        batch.reload()
      }, AGAIN_MS)
    })
    return () => {
      unhear()
      clearTimeout(due)
    }
  }, [batch])
  // After a gap, or while there is no stream.
  useReloadOn(`${greetings.value} ${polls.value}`, batch.reload)
  return batch
}

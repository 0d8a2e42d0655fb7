/** Jobs that came in one request: how far they are together, each with its state, an end to all, and what they made as one file. */
import { type Batch, type BatchItem, batchZip, cancelBatch } from '../../api/batches.ts'
import { JOB_STATUSES } from '../../api/summary.ts'
import { BASE } from '../../base.ts'
import { Ago, Moment } from '../../components/figures.tsx'
import { Id, shortId } from '../../components/id.tsx'
import { jobName, jobTrail } from '../../components/jobs/job-name.tsx'
import { Progress } from '../../components/jobs/progress.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { confirm } from '../../components/overlay/confirm.tsx'
import { Skeleton } from '../../components/skeleton.tsx'
import { StatusPill, statusWord } from '../../components/status-pill.tsx'
import { VirtualGrid } from '../../components/table/virtual-grid.tsx'
import { Words } from '../../components/words.tsx'
import { hrefOf } from '../../routes.ts'
import { tell } from '../../state/deeds.ts'
import { jobOf } from '../../state/live/live.ts'
import { formatCount, plural } from '../../text/format.ts'
import { useBatch } from './use-batch.ts'

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

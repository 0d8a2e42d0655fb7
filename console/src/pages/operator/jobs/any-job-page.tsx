/** One job, whoever owns it: how it stands, why it waits or failed, its attempts, and the end of it. */
import { cancelAnyJob, getAnyJob, type OwnedJob } from '../../../api/admin.ts'
import { InputFiles, jobName } from '../../../components/jobs/job-parts.tsx'
import { confirm } from '../../../components/overlay/dialog.tsx'
import { Loaded, Skeleton, StatusPill } from '../../../components/state.tsx'
import { type PlainColumn, PlainTable } from '../../../components/table/plain-table.tsx'
import { Duration, Id, KeyValue, Moment, Money, Words } from '../../../components/text.tsx'
import { hrefOf } from '../../../routes.ts'
import { tell } from '../../../state/deeds.ts'
import { useResource } from '../../../state/resource.ts'
import { session } from '../../../state/session.ts'
import { WaitBox } from '../../job/wait-box.tsx'
import { giveBack } from '../account-credit.tsx'
import { useServiceEvents } from '../operator-page.tsx'

const ATTEMPTS: readonly PlainColumn<OwnedJob['attempts'][number]>[] = [
  { label: 'Attempt', isNumber: true, cell: ({ number }) => number },
  { label: 'Engine', cell: ({ engine }) => <Words text={engine ?? '–'} /> },
  { label: 'From', cell: ({ from }) => from !== null && <Moment at={from} /> },
  { label: 'Took', isNumber: true, cell: ({ from, to }) => <Duration from={from} to={to} /> },
  { label: 'End', cell: ({ why }) => <Words text={why} /> },
]

export function AnyJobPage({ id = '' }: Readonly<Record<string, string>>) {
  const resource = useResource(`operator job ${id}`, (signal) => getAnyJob(id, signal))
  useServiceEvents(resource)
  async function cancel(): Promise<void> {
    const isMeant = await confirm({
      title: 'Cancel this job?',
      text: 'It ends at once if it waits, and within the grace period if it runs. The cancel is noted in the audit.',
      deed: 'Cancel the job',
      isDangerous: true,
    })
    if (!isMeant) return
    await tell(async () => {
      await cancelAnyJob(id)
      resource.reload()
    })
  }
  async function refundJob(usd: string): Promise<void> {
    if (await giveBack({ holdId: `job:${id}`, usd })) resource.reload()
  }
  return (
    <section class="page">
      <a class="dim back" href={hrefOf('/operator/jobs')}>
        ← Jobs of all accounts
      </a>
      {resource.data.value === null && <h1 class="unseen">Job</h1>}
      <Loaded resource={resource} skeleton={<Skeleton rows={6} />}>
        {(job) => (
          <>
            <div class="section-head">
              <h1>
                <Words text={jobName(job)} />
              </h1>
              <StatusPill status={job.status} />
              {(job.status === 'queued' || job.status === 'running') && (
                <button type="button" class="button small danger" onClick={() => void cancel()}>
                  Cancel…
                </button>
              )}
              {job.cost_usd !== null && Number(job.cost_usd) > 0 && (
                <button type="button" class="button small" onClick={() => void refundJob(job.cost_usd ?? '')}>
                  Refund…
                </button>
              )}
            </div>
            {job.error !== null && (
              <div class="failure">
                <p class="failure-message">
                  <Words text={job.error.message} />
                </p>
                <p class="dim">
                  <Words text={job.error.code} />
                </p>
              </div>
            )}
            {job.wait !== null && <WaitBox wait={job.wait} />}
            <Facts job={job} />
            <h2>Inputs</h2>
            <InputFiles job={job} isOwn={isOwnJob()} />
            {job.attempts.length > 0 && (
              <>
                <h2>Attempts</h2>
                <PlainTable label="Attempts" columns={ATTEMPTS} rows={job.attempts} keyOf={({ number }) => number} />
              </>
            )}
          </>
        )}
      </Loaded>
    </section>
  )
}

/** There is one account, and the operator is it. */
const isOwnJob = () => session.value?.kind === 'local'

function Facts({ job }: { readonly job: OwnedJob }) {
  const isOwn = isOwnJob()
  return (
    <KeyValue
      pairs={[
        ['Id', <Id key="id" id={job.id} label="job id" />],
        [
          'Account',
          isOwn ? (
            <Words key="account" text={job.account_id} />
          ) : (
            <a key="account" href={hrefOf(`/operator/accounts/${encodeURIComponent(job.account_id)}`)}>
              <Words text={job.account_id} />
            </a>
          ),
        ],
        ['Pool', <Words key="pool" text={job.pool} />],
        ['Engine', job.engine === null ? null : <Words key="engine" text={job.engine} />],
        ['Submitted', <Moment key="at" at={job.created_at} />],
        ['Client', job.client === null ? null : <Words key="client" text={job.client} />],
        ['Key', job.idempotency_key === null ? null : <Words key="key" text={job.idempotency_key} />],
        ['Batch', job.batch_id === null ? null : <Id key="batch" id={job.batch_id} label="batch id" />],
        ['Reused from', job.reused_from === null ? null : <Id key="reused" id={job.reused_from} label="job id" />],
        ['Results', job.outputs],
        ['Charged', job.cost_usd === null ? null : <Money key="cost" usd={job.cost_usd} />],
        ...Object.entries(job.metadata).map(([name, value]) => [name, <Words key={name} text={value} />] as const),
        [
          'Page',
          isOwn && (
            <a key="page" href={hrefOf(`/jobs/${job.id}`)}>
              Its graph, log and results
            </a>
          ),
        ],
      ]}
    />
  )
}

/** Jobs of several accounts as a table. */
import type { OwnedSummary } from '../../../api/admin-jobs.ts'
import { Ago, Duration } from '../../../components/figures.tsx'
import { jobName, jobTrail } from '../../../components/jobs/job-name.tsx'
import { StatusPill } from '../../../components/status-pill.tsx'
import { type PlainColumn, PlainTable } from '../../../components/table/plain-table.tsx'
import { Words } from '../../../components/words.tsx'
import { hrefOf } from '../../../routes.ts'

const ACCOUNT: PlainColumn<OwnedSummary> = {
  label: 'Account',
  cell: ({ account_id: account }) => (
    <a href={hrefOf(`/operator/jobs?account=${encodeURIComponent(account)}`)}>
      <Words text={account} />
    </a>
  ),
}

const ENGINE: PlainColumn<OwnedSummary> = {
  label: 'Engine',
  cell: ({ engine }) =>
    engine !== null && (
      <a href={hrefOf(`/operator/engines/${encodeURIComponent(engine)}`)}>
        <Words text={engine} />
      </a>
    ),
}

const COLUMNS: readonly PlainColumn<OwnedSummary>[] = [
  { label: 'State', cell: ({ status }) => <StatusPill status={status} /> },
  {
    label: 'Job',
    cell: (job) => (
      <a href={hrefOf(`/operator/jobs/${job.id}`)}>
        <Words text={jobName(job)} />
      </a>
    ),
  },
  ACCOUNT,
  ENGINE,
  {
    label: 'Node, error or results',
    cell: (job) => <Words text={jobTrail(job)} />,
    className: ({ status }) => (status === 'failed' ? 'failed-text' : 'dim'),
  },
  {
    label: 'Time',
    isNumber: true,
    cell: ({ status, started_at: from, completed_at: to }) => (
      <Duration from={from} to={status === 'running' || status === 'canceling' ? null : (to ?? from)} />
    ),
  },
  { label: 'Submitted', cell: ({ created_at: at }) => <Ago at={at} /> },
]

interface OwnedJobsProps {
  readonly label: string
  readonly jobs: readonly OwnedSummary[]
  /** On the page of one engine its name says nothing. */
  readonly hidesEngine?: boolean
}

export function OwnedJobs({ label, jobs, hidesEngine = false }: OwnedJobsProps) {
  const columns = hidesEngine ? COLUMNS.filter((column) => column !== ENGINE) : COLUMNS
  return <PlainTable label={label} columns={columns} rows={jobs} keyOf={({ id }) => id} />
}

/** One job: what it made, where it is, why it failed or waits, and everything else that is known of it. */
import type { JobDetail } from '../../api/job-detail.ts'
import { zipHref } from '../../api/jobs.ts'
import { isCancelable, type JobStatus } from '../../api/summary.ts'
import { InputFiles, jobName } from '../../components/jobs/job-parts.tsx'
import { EmptyState, Loaded, Skeleton } from '../../components/state.tsx'
import { TabPanel, Tabs } from '../../components/tabs/tabs.tsx'
import { Duration, KeyValue, Moment, Money, Words } from '../../components/text.tsx'
import { useKeys } from '../../keys/keys.ts'
import { lazy } from '../../lazy.tsx'
import { BASE, hash, hrefOf, navigate, setHash } from '../../routes.ts'
import { cancelOne } from '../../state/deeds.ts'
import { listAddress, neighbour } from '../../state/visited-list.ts'
import { formatSpan } from '../../text/format.ts'
import { toMarkedText } from '../../text/marks.ts'
import { JobHead } from './job-head.tsx'
import { ResultTab } from './result-tab.tsx'
import { useJob, type WatchedJob } from './use-job.ts'

const TAB_NAMES = ['result', 'graph', 'timeline', 'logs', 'workflow', 'details'] as const
type TabName = (typeof TAB_NAMES)[number]

const GraphTab = lazy(() => import('./graph-tab.tsx').then((module) => module.GraphTab))
const TimelineTab = lazy(() => import('./timeline-tab.tsx').then((module) => module.TimelineTab))
const LogsTab = lazy(() => import('./logs-tab.tsx').then((module) => module.LogsTab))
const WorkflowTab = lazy(() => import('./workflow-tab.tsx').then((module) => module.WorkflowTab))

/** What matters first: a failure at its node, everything else by what it shows. */
function firstTab(status: JobStatus): TabName {
  return status === 'failed' ? 'graph' : 'result'
}

export function JobPage({ id = '' }: Readonly<Record<string, string>>) {
  const watched = useJob(id)
  const { job, summary } = watched
  if (job.error.value?.status === 404) return <GoneJob />
  return (
    <section class="page job">
      {job.data.value === null && <h1 class="unseen">Job</h1>}
      <Loaded resource={job} skeleton={<Skeleton rows={6} />}>
        {(detail) => <Job id={id} detail={{ ...detail, ...live(detail, summary) }} watched={watched} />}
      </Loaded>
    </section>
  )
}

/** The newest of what both know. The list's failure is shorter than the job's own. */
function live(detail: JobDetail, summary: WatchedJob['summary']): Partial<JobDetail> {
  if (summary === undefined || summary.version < detail.version) return {}
  const { status, value, node, step, steps, queue_position, started_at, completed_at, engine, attempt } = summary
  return { status, value, node, step, steps, queue_position, started_at, completed_at, engine, attempt }
}

interface JobProps {
  readonly id: string
  readonly detail: JobDetail
  readonly watched: WatchedJob
}

function Job({ id, detail, watched }: JobProps) {
  const named = TAB_NAMES.find((name) => name === hash.value.split('/')[0])
  const tab = named ?? firstTab(detail.status)
  document.title = `${toMarkedText(jobName(detail))} · Atelier`
  const goBy = (by: 1 | -1) => {
    const next = neighbour(id, by)
    if (next !== null) navigate(`/jobs/${next}${hash.value === '' ? '' : `#${hash.value}`}`)
    return next !== null
  }
  useKeys({
    '[': () => goBy(-1),
    ']': () => goBy(1),
    c: () => {
      if (!isCancelable(detail.status)) return false
      void cancelOne(id)
      return true
    },
    r: () => {
      navigate(`/run?from=${id}`)
      return true
    },
    d: () => {
      if (detail.outputs === 0) return false
      document.querySelector<HTMLAnchorElement>('[data-zip]')?.click()
      return true
    },
    Escape: () => {
      navigate(listAddress())
      return true
    },
    ...Object.fromEntries(
      TAB_NAMES.map((name, index) => [
        String(index + 1),
        () => {
          setHash(name)
          return true
        },
      ]),
    ),
  })
  return (
    <>
      <JobHead detail={detail} zip={zipHref(BASE, [id])} />
      <Tabs
        label="Parts of this job"
        chosen={tab}
        onChoose={setHash}
        tabs={[
          { name: 'result', label: detail.outputs > 0 ? `Result ${detail.outputs}` : 'Result' },
          { name: 'graph', label: 'Graph' },
          { name: 'timeline', label: 'Timeline' },
          { name: 'logs', label: 'Logs' },
          { name: 'workflow', label: 'Workflow' },
          { name: 'details', label: 'Details' },
        ]}
      />
      <TabPanel name={tab}>
        {tab === 'result' && <ResultTab detail={detail} preview={watched.preview.value} />}
        {tab === 'graph' && <GraphTab detail={detail} watched={watched} />}
        {tab === 'timeline' && <TimelineTab detail={detail} watched={watched} />}
        {tab === 'logs' && <LogsTab detail={detail} watched={watched} />}
        {tab === 'workflow' && <WorkflowTab id={id} />}
        {tab === 'details' && <DetailsTab detail={detail} />}
      </TabPanel>
    </>
  )
}

function GoneJob() {
  return (
    <section class="page">
      <h1 class="unseen">Job</h1>
      <EmptyState title="This job is not here">
        <p class="dim">
          There is none with this id, or it was kept for its time and then removed with everything that it made.
        </p>
        <a class="button" href={hrefOf(listAddress())}>
          Back to the list
        </a>
      </EmptyState>
    </section>
  )
}

/** Everything else that is known: metadata, inputs, attempts with their reasons, price, and the same as raw JSON. */
function DetailsTab({ detail }: { readonly detail: JobDetail }) {
  const pairs = Object.entries(detail.metadata)
  return (
    <div class="details">
      <section class="card" aria-labelledby="details-job">
        <h2 id="details-job">Job</h2>
        <KeyValue
          pairs={[
            ['Id', <code key="id">{detail.id}</code>],
            ['Submitted', <Moment key="at" at={detail.created_at} />],
            ['Started', detail.started_at === null ? null : <Moment key="at" at={detail.started_at} />],
            ['Ended', detail.completed_at === null ? null : <Moment key="at" at={detail.completed_at} />],
            ['Kept until', <Moment key="at" at={detail.expires_at} />],
            ['Client', detail.client === null ? null : <Words key="client" text={detail.client} />],
            ['Key', detail.idempotency_key === null ? null : <Words key="key" text={detail.idempotency_key} />],
            [
              'Batch',
              detail.batch_id === null ? null : (
                <a key="batch" href={hrefOf(`/batches/${detail.batch_id}`)}>
                  all jobs that came with it
                </a>
              ),
            ],
            ['Pool', <Words key="pool" text={detail.pool} />],
            ['Engine', detail.engine === null ? null : <Words key="engine" text={detail.engine} />],
            ['Priority', String(detail.priority)],
            ['Held', detail.price?.held_usd == null ? null : <Money key="held" usd={detail.price.held_usd} />],
            ['Charged', detail.price?.charged_usd == null ? null : <Money key="paid" usd={detail.price.charged_usd} />],
          ]}
        />
      </section>
      <section class="card" aria-labelledby="details-metadata">
        <h2 id="details-metadata">Metadata</h2>
        {pairs.length === 0 ? (
          <p class="dim">none</p>
        ) : (
          <KeyValue
            pairs={pairs.map(([key, value]) => [
              key,
              <a key={key} href={hrefOf(`/jobs?${new URLSearchParams({ [`meta.${key}`]: value })}`)}>
                <Words text={value} />
              </a>,
            ])}
          />
        )}
      </section>
      <section class="card" aria-labelledby="details-inputs">
        <h2 id="details-inputs">Inputs</h2>
        <InputFiles job={detail} isOwn />
      </section>
      <section class="card" aria-labelledby="details-attempts">
        <h2 id="details-attempts">Attempts</h2>
        {detail.attempts.length === 0 && <p class="dim">not started yet</p>}
        {(detail.gpu_seconds ?? 0) > 0 && <p>{formatSpan((detail.gpu_seconds ?? 0) * 1000)} of GPU time</p>}
        <ol class="plain-list">
          {detail.attempts.map((attempt, index) => (
            <li key={index}>
              <span class="number dim">{attempt.number}</span>
              <span>{attempt.engine === null ? '–' : <Words text={attempt.engine} />}</span>
              <Duration from={attempt.from} to={attempt.to} />
              <span class="dim">
                <Words text={attempt.why} />
              </span>
            </li>
          ))}
        </ol>
      </section>
    </div>
  )
}

/** What the job is and how it stands, the reason first: why it failed, or why it waits. */
import type { JobDetail } from '../../api/job-detail.ts'
import { isCancelable, isEnded } from '../../api/summary.ts'
import { Icon } from '../../components/icon.tsx'
import { jobName, jobTrail, Progress } from '../../components/jobs/job-parts.tsx'
import { Menu } from '../../components/overlay/menu.tsx'
import { StatusPill } from '../../components/state.tsx'
import { Ago, Duration, Id, Money, Words } from '../../components/text.tsx'
import { hrefOf, navigate, setHash } from '../../routes.ts'
import { cancelOne, moveOne, rerunOne, resumeOwnQueue } from '../../state/deeds.ts'
import { listAddress } from '../../state/visited-list.ts'
import { plural } from '../../text/format.ts'
import { WaitBox } from './wait-box.tsx'

export function JobHead({ detail, zip }: { readonly detail: JobDetail; readonly zip: string }) {
  const { id, status, outputs } = detail
  const isRunning = status === 'running' || status === 'canceling'
  return (
    <header class="job-head">
      <a class="dim back" href={hrefOf(listAddress())}>
        ← Jobs
      </a>
      <div class="job-title">
        <h1>
          <Words text={jobName(detail)} />
        </h1>
        <div class="row">
          {isCancelable(status) && (
            <button type="button" class="button danger" onClick={() => void cancelOne(id)}>
              Cancel
            </button>
          )}
          {outputs > 0 && (
            <a class="button" href={zip} download data-zip>
              <Icon name="down" /> Download all
            </a>
          )}
          <a class="button primary" href={hrefOf(`/run?from=${id}`)}>
            <Icon name="again" /> Run again…
          </a>
          <MoreDeeds detail={detail} />
        </div>
      </div>
      <p class="job-line">
        <StatusPill status={status} />
        {detail.reused_from === null ? (
          <span>
            {isEnded(status) ? 'after ' : ''}
            <Duration from={detail.started_at} to={detail.completed_at} />
          </span>
        ) : (
          <a class="chip" href={hrefOf(`/jobs/${detail.reused_from}`)}>
            reused: the result of an earlier job
          </a>
        )}
        {detail.attempt > 1 && <span>attempt {detail.attempt}</span>}
        {detail.engine !== null && (
          <span>
            on <Words text={detail.engine} />
          </span>
        )}
        <Charge detail={detail} />
        <span class="dim">
          submitted <Ago at={detail.created_at} />
        </span>
        {detail.batch_id !== null && <a href={hrefOf(`/batches/${detail.batch_id}`)}>of a batch</a>}
        <Id id={id} label="job id" />
      </p>
      {isRunning && (
        <div class="job-progress">
          <span class="dim">
            <Words text={jobTrail(detail)} />
          </span>
          <Progress value={detail.value} label="Progress" run={`${id} ${detail.attempt}`} />
          <span class="number">{detail.value === null ? '' : `${Math.floor(detail.value * 100)} %`}</span>
        </div>
      )}
      {detail.error !== null && status === 'failed' && <FailureBox detail={detail} />}
      {status === 'queued' && detail.wait !== null && <WaitBox wait={detail.wait} />}
    </header>
  )
}

/** Of a job that waits. */
function queueDeeds({ id, status, wait }: JobDetail) {
  if (status !== 'queued' || wait === null) return []
  return [
    {
      label: 'To the front of the queue',
      onChoose: () => void moveOne(id, { move: 'front' }, 'It is the first of this account now.'),
    },
    {
      label: 'To the back of the queue',
      onChoose: () => void moveOne(id, { move: 'back' }, 'It is the last of this account now.'),
    },
    ...(wait.held_until === null
      ? []
      : [{ label: 'Hold it no longer', onChoose: () => void moveOne(id, { not_before: null }, 'It may run now.') }]),
    ...(wait.pauses.some(({ by }) => by === 'account')
      ? [{ label: 'Resume the account’s queue', onChoose: () => void resumeOwnQueue() }]
      : []),
  ]
}

function MoreDeeds({ detail }: { readonly detail: JobDetail }) {
  const { id, links } = detail
  return (
    <Menu
      label="More"
      buttonClass="button"
      items={[
        ...queueDeeds(detail),
        {
          label: 'Run again, unchanged',
          onChoose: () => void rerunOne(id).then((next) => next !== null && navigate(`/jobs/${next}`)),
        },
        { label: 'Raw JSON', href: links.raw },
        { label: 'Workflow as JSON', href: links.workflow },
        { label: 'Log as text', href: links.log },
      ]}
    >
      <Icon name="dots" />
    </Menu>
  )
}

function Charge({ detail }: { readonly detail: JobDetail }) {
  const { price, status } = detail
  if (price === null) return null
  if (price.charged_usd !== null)
    return (
      <span>
        <Money usd={price.charged_usd} /> charged
      </span>
    )
  if (status === 'failed' || status === 'canceled') return <span>not charged</span>
  if (price.held_usd === null) return null
  return (
    <span>
      <Money usd={price.held_usd} /> held
    </span>
  )
}

/** Why it failed: the message, the node, what to do next, and whether others failed so. */
function FailureBox({ detail }: { readonly detail: JobDetail }) {
  const { error } = detail
  if (error === null) return null
  const advice = nextStep(error.code)
  return (
    <div class="failure" role="group" aria-label="Failure">
      <p class="failure-message">
        <Icon name="warn" />
        <span>
          <Words text={error.message} />
        </span>
      </p>
      <p class="failure-line">
        {error.node_id !== null && (
          <span>
            at{' '}
            <button
              type="button"
              class="link-button"
              onClick={() => setHash(`graph/${encodeURIComponent(error.node_id ?? '')}`)}
            >
              node {error.node_id}
              {error.class_type !== null && `, ${error.class_type}`}
            </button>
          </span>
        )}
        <span class="chip">{error.code}</span>
        {error.others_alike !== 0 && (
          <a
            href={hrefOf(
              `/jobs?status=failed&since=7d&code=${encodeURIComponent(error.code)}&failure=${error.signature}`,
            )}
          >
            {error.others_alike === null ? 'many others' : plural(error.others_alike, 'other')} this week →
          </a>
        )}
      </p>
      {advice !== null && <p class="failure-advice">Next: {advice}</p>}
      {error.traceback !== null && error.traceback !== '' && (
        <details>
          <summary>Traceback</summary>
          <pre class="media-text" tabIndex={0} aria-label="Traceback">
            <Words text={error.traceback} isBlock />
          </pre>
        </details>
      )}
    </div>
  )
}

/** What to do about a failure, by its code. A code that is not here has no advice: its message says what there is to say. */
const STEPS: Readonly<Record<string, string>> = {
  out_of_memory: 'a smaller picture, tile or batch, or an engine with more memory.',
  node_execution_error: 'look at this node’s inputs in the graph, change them, and run it again.',
  execution_error: 'look at this node’s inputs in the graph, change them, and run it again.',
  machine_fault: 'run it again when the engine is mended: its disk, driver or a library failed, not the workflow.',
  timeout: 'fewer steps or a smaller picture; an operator can allow more time.',
  worker_lost: 'run it again: the process that ran it went away three times, which is rarely the workflow’s doing.',
  engine_lost: 'run it again: the engine went away while it ran.',
  credentials_lost: 'submit it again with its credentials: they are kept in memory only and a restart took them.',
  invalid_workflow: 'open the workflow and correct what the message names.',
  missing_weights: 'install the weights on an engine, or choose others.',
  insufficient_credits: 'add credit to the account, then run it again.',
}

function nextStep(code: string): string | null {
  return STEPS[code] ?? null
}

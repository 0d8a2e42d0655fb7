/** What the job is and how it stands, the reason first: why it failed, or why it waits. */
import type { JobDetail } from '../../api/job-detail.ts'
import { isCancelable, isEnded } from '../../api/summary.ts'
import { Ago, Duration, Money } from '../../components/figures.tsx'
import { Icon } from '../../components/icon.tsx'
import { Id } from '../../components/id.tsx'
import { jobName, jobTrail } from '../../components/jobs/job-name.tsx'
import { Progress } from '../../components/jobs/progress.tsx'
import { Menu } from '../../components/overlay/menu.tsx'
import { StatusPill } from '../../components/status-pill.tsx'
import { Words } from '../../components/words.tsx'
import { hrefOf, navigate } from '../../routes.ts'
import { cancelOne, rerunOne } from '../../state/deeds.ts'
import { listAddress } from '../../state/visited-list.ts'
import { FailureBox } from './failure-box.tsx'
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
          <Menu
            label="More"
            buttonClass="button"
            items={[
              {
                label: 'Run again, unchanged',
                onChoose: () => void rerunOne(id).then((next) => next !== null && navigate(`/jobs/${next}`)),
              },
              { label: 'Raw JSON', href: detail.links.raw },
              { label: 'Workflow as JSON', href: detail.links.workflow },
              { label: 'Log as text', href: detail.links.log },
            ]}
          >
            <Icon name="dots" />
          </Menu>
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

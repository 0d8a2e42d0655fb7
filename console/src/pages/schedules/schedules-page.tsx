/** Schedules of the account: when each submits next, what became of its last times, new ones, and what can be done to them. */
import { useSignal } from '@preact/signals'
import { commandSchedule, deleteSchedule, listScheduleRuns, listSchedules, type Schedule } from '../../api/schedules.ts'
import { Icon } from '../../components/icon.tsx'
import { confirm } from '../../components/overlay/dialog.tsx'
import { EmptyState, Loaded, Skeleton } from '../../components/state.tsx'
import { Moment, showToast, Words } from '../../components/text.tsx'
import { hrefOf, query, setQuery } from '../../routes.ts'
import { tell } from '../../state/deeds.ts'
import { useResource } from '../../state/resource.ts'
import { toMarkedText } from '../../text/marks.ts'
import { ScheduleForm } from './schedule-form.tsx'

export function SchedulesPage() {
  const resource = useResource('schedules', listSchedules)
  const isMaking = query.value.get('new') === '1'
  const openNew = () => setQuery({ new: '1' })
  const closeNew = () => setQuery({ new: null }, { replace: true })
  return (
    <section class="page schedules">
      <div class="page-head">
        <h1>Schedules</h1>
        <button type="button" class="button primary" onClick={openNew}>
          <Icon name="plus" /> New schedule
        </button>
      </div>
      <Loaded resource={resource} skeleton={<Skeleton rows={3} />}>
        {({ schedules }) =>
          schedules.length === 0 ? (
            <EmptyState title="No schedules yet">
              <p class="dim">
                A schedule submits a workflow, or calls an endpoint, at given times: every night, on Mondays, each hour.
              </p>
              <button type="button" class="button primary" onClick={openNew}>
                Make the first one
              </button>
            </EmptyState>
          ) : (
            <ul class="plain-list card-list">
              {schedules.map((schedule) => (
                <OneSchedule key={schedule.id} schedule={schedule} onChanged={resource.reload} />
              ))}
            </ul>
          )
        }
      </Loaded>
      {isMaking && (
        <ScheduleForm
          onClose={closeNew}
          onMade={() => {
            closeNew()
            resource.reload()
          }}
        />
      )}
    </section>
  )
}

interface OneScheduleProps {
  readonly schedule: Schedule
  readonly onChanged: () => void
}

function OneSchedule({ schedule, onChanged }: OneScheduleProps) {
  const { id, name, cron, time_zone: zone, endpoint, state, reason, next_at: nextAt, last_error: error } = schedule
  const isOpen = useSignal(false)
  return (
    <li>
      <span class="asset-name">
        <Words text={name} /> {state !== 'active' && <span class="chip quiet">{state}</span>}
        <span class="dim">
          <code>{cron}</code> in {zone} · {endpoint === null ? 'a workflow' : <Words text={endpoint} />}
          {nextAt !== null && (
            <>
              {' · next '}
              <Moment at={nextAt} />
            </>
          )}
          {reason !== null && (
            <>
              {' · '}
              <Words text={reason} />
            </>
          )}
        </span>
        {error !== null && (
          <span class="dim">
            went wrong <Moment at={error.at} />: <Words text={error.message} />
          </span>
        )}
        {isOpen.value && <LastRuns id={id} />}
      </span>
      <button
        type="button"
        class="button small"
        aria-expanded={isOpen.value}
        aria-label={`Last runs of ${toMarkedText(name)}`}
        onClick={() => {
          isOpen.value = !isOpen.value
        }}
      >
        Last runs
      </button>
      <Deeds schedule={schedule} onChanged={onChanged} />
    </li>
  )
}

function Deeds({ schedule, onChanged }: OneScheduleProps) {
  const { id, state } = schedule
  const title = toMarkedText(schedule.name)
  async function command(deed: 'pause' | 'resume' | 'run', done: string): Promise<void> {
    if ((await tell(() => commandSchedule(id, deed))) === null) return
    showToast(done)
    onChanged()
  }
  async function remove(): Promise<void> {
    const isMeant = await confirm({
      title: `Remove “${title}”?`,
      text: 'It submits nothing any more. Jobs that it has submitted stay.',
      deed: 'Remove',
      isDangerous: true,
    })
    if (!isMeant) return
    await tell(async () => {
      await deleteSchedule(id)
      onChanged()
    })
  }
  const [deed, label, done] =
    state === 'active' ? (['pause', 'Pause', 'is paused'] as const) : (['resume', 'Resume', 'goes on'] as const)
  return (
    <>
      <button
        type="button"
        class="button small"
        aria-label={`Run ${title} now`}
        onClick={() => void command('run', `“${title}” was submitted.`)}
      >
        Run now
      </button>
      <button
        type="button"
        class="button small"
        aria-label={`${label} ${title}`}
        onClick={() => void command(deed, `“${title}” ${done}.`)}
      >
        {label}
      </button>
      <button type="button" class="button small danger" aria-label={`Remove ${title}`} onClick={() => void remove()}>
        Remove
      </button>
    </>
  )
}

function LastRuns({ id }: { readonly id: string }) {
  const resource = useResource(`schedule ${id}`, (signal) => listScheduleRuns(id, signal))
  return (
    <Loaded resource={resource} skeleton={<Skeleton rows={2} />}>
      {({ runs }) =>
        runs.length === 0 ? (
          <span class="dim">None of its times has come yet.</span>
        ) : (
          <ul class="plain-list">
            {runs.slice(0, 10).map(({ due_at: dueAt, by_hand: isByHand, outcome, job_id: jobId, message }) => (
              <li key={`${dueAt}${isByHand}`}>
                <Moment at={dueAt} />
                {isByHand && ', by hand'}:{' '}
                {jobId === null ? outcome : <a href={hrefOf(`/jobs/${encodeURIComponent(jobId)}`)}>{outcome}</a>}
                {message !== null && (
                  <span class="dim">
                    {' '}
                    <Words text={message} />
                  </span>
                )}
              </li>
            ))}
          </ul>
        )
      }
    </Loaded>
  )
}

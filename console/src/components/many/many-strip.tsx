/** How far the service is with what was asked of many jobs, on whatever page lists them, also after it was closed in between. */
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { type BulkAction, type BulkKind, type BulkScope, getBulk, listBulk, stopBulk } from '../../api/bulk.ts'
import { ApiError } from '../../api/client.ts'
import { hrefOf } from '../../routes.ts'
import { tell } from '../../state/deeds.ts'
import { isWatched } from '../../state/live/presence.ts'
import { formatCount, plural } from '../../text/format.ts'
import { Progress } from '../jobs/job-parts.tsx'
import { showToast, Words } from '../text.tsx'

const followed: Readonly<Record<BulkScope, ReturnType<typeof signal<readonly BulkAction[]>>>> = {
  own: signal<readonly BulkAction[]>([]),
  all: signal<readonly BulkAction[]>([]),
}

const DOING: Readonly<Record<BulkKind, string>> = {
  cancel: 'Canceling',
  rerun: 'Running again',
  prioritize: 'Moving',
  download: 'Downloading',
}
const DONE: Readonly<Record<BulkKind, string>> = {
  cancel: 'canceled',
  rerun: 'submitted again',
  prioritize: 'moved',
  download: 'to download',
}

/** "Canceling 120 jobs". */
export function bulkName({ action, total, state }: BulkAction): string {
  return state === 'working' ? `${DOING[action]} ${plural(total, 'job')}` : `${plural(total, 'job')} ${DONE[action]}`
}

/** "118 jobs canceled, 2 had ended". */
export function bulkOutcome({ action, done, skipped, refused, has_more: hasMore }: BulkAction): string {
  return [
    `${plural(done, 'job')} ${DONE[action]}`,
    ...(skipped > 0 ? [`${formatCount(skipped)} had ended or gone`] : []),
    ...(refused > 0 ? [`${formatCount(refused)} refused`] : []),
    ...(hasMore ? ['there are more'] : []),
  ].join(', ')
}

export const bulkPage = (scope: BulkScope, id: string) =>
  `${scope === 'all' ? '/operator' : ''}/bulk/${encodeURIComponent(id)}`

function take(scope: BulkScope, action: BulkAction): void {
  const others = (followed[scope].value ?? []).filter(({ id }) => id !== action.id)
  if (action.state === 'working') followed[scope].value = [...others, action]
  else {
    followed[scope].value = others
    showToast(`${bulkOutcome(action)}.`)
  }
}

/** From the moment that it is asked for. */
export function followBulk(scope: BulkScope, action: BulkAction): void {
  take(scope, action)
}

const LOOK_MS = 1000

/** Those that are at work. `onProgress`: what a page shows may have changed. */
export function ManyStrip({ scope, onProgress }: { readonly scope: BulkScope; readonly onProgress?: () => void }) {
  const actions = followed[scope].value ?? []
  useEffect(() => {
    void ask(async () => {
      const { bulk_actions: all } = await listBulk(scope)
      followed[scope].value = all.filter(({ state }) => state === 'working')
    })
  }, [scope])
  const isAtWork = actions.length > 0
  useEffect(() => {
    if (!isAtWork) return
    const timer = setInterval(() => {
      if (!isWatched.value) return
      for (const { id } of followed[scope].value ?? [])
        void ask(async () => {
          take(scope, await getBulk(scope, id))
          onProgress?.()
        })
    }, LOOK_MS)
    return () => clearInterval(timer)
  }, [isAtWork, scope])
  if (!isAtWork) return null
  return (
    <section class="many-strip" aria-label="At work on many jobs">
      {actions.map((action) => (
        <BulkLine key={action.id} scope={scope} action={action} />
      ))}
    </section>
  )
}

/** One of them: its name, how far it is, what it waits for, and an end to it. */
export function BulkLine({ scope, action }: { readonly scope: BulkScope; readonly action: BulkAction }) {
  const { id, progress, reason, done, skipped, refused, total } = action
  async function stop(): Promise<void> {
    await tell(async () => take(scope, await stopBulk(scope, id)))
  }
  return (
    <div class="many-line">
      <a href={hrefOf(bulkPage(scope, id))}>{bulkName(action)}</a>
      <Progress value={progress} label={bulkName(action)} run={id} />
      <span class="number dim">
        {formatCount(done + skipped + refused)} of {formatCount(total)}
      </span>
      {reason !== null && (
        <span class="dim">
          waits: <Words text={reason.message} />
        </span>
      )}
      <button type="button" class="button small" onClick={() => void stop()}>
        Stop
      </button>
    </div>
  )
}

/** An outage is told by the page itself; one that is gone is asked for no more. */
async function ask(question: () => Promise<void>): Promise<void> {
  try {
    await question()
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
  }
}

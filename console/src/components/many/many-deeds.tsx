/** What can be done to many jobs. The number is asked for and shown before; from then on the service does it. */
import { useEffect, useState } from 'preact/hooks'
import {
  type BulkAction,
  type BulkChoice,
  type BulkKind,
  type BulkScope,
  type BulkWish,
  bulkZip,
  createBulk,
  previewBulk,
} from '../../api/bulk.ts'
import { ApiError } from '../../api/client.ts'
import { BASE } from '../../routes.ts'
import { formatCount, plural } from '../../text/format.ts'
import { Dialog } from '../overlay/dialog.tsx'
import { ErrorBox } from '../state.tsx'
import { followBulk } from './many-strip.tsx'

interface Deed {
  /** On the button that begins, of this many. */
  button(count: string): string
  /** With the number, as a question and on the button that ends it. */
  ask(jobs: string): string
  readonly text: string
  readonly isDangerous?: boolean
}

const DEEDS: Readonly<Record<BulkKind, Deed>> = {
  cancel: {
    button: (count) => `Cancel ${count}…`,
    ask: (jobs) => `Cancel ${jobs}`,
    text: 'Jobs that wait leave the queue. Jobs that run are stopped; what they saved so far is kept.',
    isDangerous: true,
  },
  rerun: {
    button: (count) => `Run ${count} again…`,
    ask: (jobs) => `Run ${jobs} again`,
    text: 'Each is submitted once more, as it was, and costs what it costs. Those that find no room in the queue wait for it.',
  },
  prioritize: {
    button: () => 'Priority…',
    ask: (jobs) => `Move ${jobs}`,
    text: 'Among the waiting jobs of an account those with a higher priority run first; 0 is the usual one.',
  },
  download: {
    button: (count) => `Download ${count}…`,
    ask: (jobs) => `Download what ${jobs} made`,
    text: 'A folder for each job, the oldest first, in archives of at most 500 jobs.',
  },
}

interface ManyDeedsProps {
  readonly scope: BulkScope
  readonly choice: BulkChoice
  readonly kinds: readonly BulkKind[]
  /** By kind, to how many it could be done, as far as the page knows; left out: it does not know. */
  readonly counts?: Readonly<Partial<Record<BulkKind, number>>>
  /** Of the buttons. */
  readonly size?: 'small' | 'usual'
  readonly onDone?: () => void
}

export function ManyDeeds({ scope, choice, kinds, counts = {}, size = 'usual', onDone }: ManyDeedsProps) {
  const [kind, setKind] = useState<BulkKind | null>(null)
  return (
    <>
      {kinds.map((each) => {
        const count = counts[each]
        if (count === 0) return null
        const { button, isDangerous } = DEEDS[each]
        return (
          <button
            key={each}
            type="button"
            class={`button ${size === 'small' ? 'small' : ''} ${isDangerous === true ? 'danger' : ''}`}
            onClick={() => setKind(each)}
          >
            {button(count === undefined ? 'all' : formatCount(count))}
          </button>
        )
      })}
      {kind !== null && (
        <ManyDialog scope={scope} choice={choice} kind={kind} onClose={() => setKind(null)} onDone={onDone} />
      )}
    </>
  )
}

interface ManyDialogProps extends Pick<ManyDeedsProps, 'scope' | 'choice' | 'onDone'> {
  readonly kind: BulkKind
  readonly onClose: () => void
}

interface Counted {
  readonly jobs: string
  readonly isNone: boolean
  readonly asOf: string
}

const FIRST_PRIORITY = 10

/** A question whose number is the service's own, for exactly these jobs: those that come later are not among them. */
export function ManyDialog({ scope, choice, kind, onClose, onDone }: ManyDialogProps) {
  const { ask, text, isDangerous } = DEEDS[kind]
  const [isOnlyWaiting, setOnlyWaiting] = useState(false)
  const [priority, setPriority] = useState(FIRST_PRIORITY)
  const [counted, setCounted] = useState<Counted | null>(null)
  const [error, setError] = useState<ApiError | null>(null)
  const [made, setMade] = useState<BulkAction | null>(null)
  const wish: BulkWish = { ...choice, kind, isOnlyWaiting, priority: kind === 'prioritize' ? priority : null }

  useEffect(() => {
    let isGone = false
    setCounted(null)
    tellError(setError, async () => {
      const { count, has_more: hasMore, as_of: asOf } = await previewBulk(scope, wish)
      const jobs = `${hasMore ? 'the oldest ' : ''}${plural(count, 'job')}`
      if (!isGone) setCounted({ jobs, isNone: count === 0, asOf })
    })
    return () => {
      isGone = true
    }
  }, [isOnlyWaiting])

  async function go(event: Event): Promise<void> {
    event.preventDefault()
    if (counted === null) return
    await tellError(setError, async () => {
      const action = await createBulk(scope, { ...wish, of: toThose(choice.of, counted.asOf) })
      onDone?.()
      if (kind === 'download') return setMade(action)
      followBulk(scope, action)
      onClose()
    })
  }

  const title = counted === null || counted.isNone ? ask('jobs') : ask(counted.jobs)
  if (made !== null) return <Archives action={made} onClose={onClose} />
  return (
    <Dialog title={`${title}?`} onClose={onClose}>
      <form class="stack" onSubmit={(event) => void go(event)}>
        <p role="status">
          {counted === null && error === null && 'Counting…'}
          {counted?.isNone === true && 'There is no job to which this could be done.'}
          {counted?.isNone === false && text}
        </p>
        {kind === 'cancel' && (
          <label class="row">
            <input type="checkbox" checked={isOnlyWaiting} onChange={() => setOnlyWaiting(!isOnlyWaiting)} />
            Leave those that run
          </label>
        )}
        {kind === 'prioritize' && <PriorityField value={priority} onChange={setPriority} />}
        {error !== null && <ErrorBox error={error} />}
        <div class="dialog-deeds">
          <button type="button" class="button" onClick={onClose}>
            Back
          </button>
          <button
            type="submit"
            class={`button ${isDangerous === true ? 'danger-full' : 'primary'}`}
            disabled={counted === null || counted.isNone}
          >
            {counted === null || counted.isNone ? 'Counting…' : ask(counted.jobs)}
          </button>
        </div>
      </form>
    </Dialog>
  )
}

interface PriorityFieldProps {
  readonly value: number
  readonly onChange: (value: number) => void
}

function PriorityField({ value, onChange }: PriorityFieldProps) {
  return (
    <label class="stack">
      Priority
      <input
        type="number"
        min={-1_000_000}
        max={1_000_000}
        step={1}
        required
        value={value}
        onInput={(event) => onChange(event.currentTarget.valueAsNumber)}
      />
    </label>
  )
}

/** A filter has its own end, if it ends before. */
function toThose(of: BulkChoice['of'], asOf: string): BulkChoice['of'] {
  if (!('filter' in of)) return of
  const { until } = of.filter
  return { filter: { ...of.filter, until: until !== undefined && until < asOf ? until : asOf } }
}

async function tellError(setError: (error: ApiError | null) => void, deed: () => Promise<void>): Promise<void> {
  try {
    setError(null)
    await deed()
  } catch (thrown) {
    if (!(thrown instanceof ApiError)) throw thrown
    setError(thrown)
  }
}

/** Each is made while it is fetched; they can be fetched again for a week. */
function Archives({
  action: { id, parts, total },
  onClose,
}: {
  readonly action: BulkAction
  readonly onClose: () => void
}) {
  return (
    <Dialog title={`What ${plural(total, 'job')} made`} onClose={onClose}>
      <ul class="plain-list">
        {Array.from({ length: parts }, (_, index) => (
          <li key={index}>
            <a class="button primary" href={bulkZip(BASE, id, index + 1)} download>
              {parts === 1 ? 'Download' : `Download part ${index + 1} of ${parts}`}
            </a>
          </li>
        ))}
      </ul>
    </Dialog>
  )
}

/** Commands by name: every place, models and saved forms, what can be done, and a search for jobs with whatever was typed. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { listAccounts } from '../../api/admin.ts'
import { ApiError } from '../../api/client.ts'
import { listEndpoints } from '../../api/endpoints.ts'
import { readFilter, toSearchAddress } from '../../api/filter.ts'
import { listForms, listJobs } from '../../api/jobs.ts'
import { listModels } from '../../api/models.ts'
import { listViews } from '../../api/search.ts'
import { isHelpOpen, isPaletteOpen } from '../../keys/keys.ts'
import { navigate } from '../../routes.ts'
import { serverNow } from '../../state/clock.ts'
import { isPaused, setPaused } from '../../state/live/live.ts'
import { theme } from '../../state/preferences.ts'
import { session } from '../../state/session.ts'
import { toMarkedText } from '../../text/marks.ts'
import { jobName } from '../jobs/job-parts.tsx'
import { Dialog } from '../overlay/dialog.tsx'
import { statusWord } from '../state.tsx'
import { shortId } from '../text.tsx'
import { PLACES } from './nav-bar.tsx'

interface Command {
  readonly label: string
  readonly hint: string
  readonly run: () => void
}

function commands(): Command[] {
  const { value: current } = session
  if (current === null) return []
  const places = PLACES.filter(({ isThere = () => true }) => isThere(current)).map(({ to, label }) => ({
    label,
    hint: 'go to',
    run: () => navigate(to),
  }))
  const further = (isThere: boolean, entries: Readonly<Record<string, string>>): readonly Command[] =>
    isThere ? Object.entries(entries).map(([label, to]) => ({ label, hint: 'go to', run: () => navigate(to) })) : []
  return [
    ...places,
    ...further(current.operator, { Engines: '/operator/engines', Audit: '/operator/audit' }),
    ...further(current.operator && current.features.accounts, {
      Accounts: '/operator/accounts',
      'Usage of all accounts': '/operator/usage',
      'New account': '/operator/accounts?new=1',
    }),
    { label: 'Many jobs', hint: 'go to', run: () => navigate('/bulk') },
    { label: 'Failed jobs', hint: 'go to', run: () => navigate('/jobs?status=failed') },
    { label: 'Running jobs', hint: 'go to', run: () => navigate('/jobs?status=running') },
    { label: 'Waiting jobs', hint: 'go to', run: () => navigate('/jobs?status=queued') },
    { label: 'Jobs of today', hint: 'go to', run: () => navigate('/jobs?since=today') },
    ...(current.features.models
      ? [{ label: 'Calls of models', hint: 'go to', run: () => navigate('/models/calls') }]
      : []),
    ...(current.signed_in && current.features.accounts
      ? [
          { label: 'Usage', hint: 'go to', run: () => navigate('/account/usage') },
          { label: 'API keys', hint: 'go to', run: () => navigate('/account/keys') },
          { label: 'Statement', hint: 'go to', run: () => navigate('/account/statement') },
          { label: 'Budgets', hint: 'go to', run: () => navigate('/account/budgets') },
          { label: 'Own provider keys', hint: 'go to', run: () => navigate('/account/provider-keys') },
          { label: 'New key', hint: 'do', run: () => navigate('/account/keys?new=1') },
        ]
      : [{ label: 'GPU time', hint: 'go to', run: () => navigate('/account/usage') }]),
    { label: 'New schedule', hint: 'do', run: () => navigate('/schedules?new=1') },
    { label: 'New webhook', hint: 'do', run: () => navigate('/webhooks?new=1') },
    { label: 'Run a workflow', hint: 'do', run: () => navigate('/run') },
    { label: isPaused.value ? 'Go on live' : 'Pause live', hint: 'do', run: () => setPaused(!isPaused.value) },
    { label: 'Light theme', hint: 'set', run: () => (theme.value = 'light') },
    { label: 'Dark theme', hint: 'set', run: () => (theme.value = 'dark') },
    { label: 'Theme of the system', hint: 'set', run: () => (theme.value = 'auto') },
    { label: 'Keyboard shortcuts', hint: 'show', run: () => (isHelpOpen.value = true) },
  ]
}

/** Names that the service knows, asked for when the palette is opened; what is not answered is left out, and what may not be seen is not asked for. */
async function askNames(): Promise<readonly Command[]> {
  const { value: current } = session
  if (current === null) return []
  const { features, signed_in: hasAccount, operator } = current
  const or = <Value,>(question: Promise<readonly Value[]>) => question.catch((): readonly Value[] => [])
  const [forms, views, models, endpoints, accounts] = await Promise.all([
    or(hasAccount ? listForms().then((answer) => answer.forms) : Promise.resolve([])),
    or(hasAccount ? listViews().then((answer) => answer.views) : Promise.resolve([])),
    or(hasAccount && features.models ? listModels() : Promise.resolve([])),
    or(hasAccount ? listEndpoints(null).then((answer) => answer.endpoints) : Promise.resolve([])),
    or(operator && features.accounts ? listAccounts().then((answer) => answer.accounts) : Promise.resolve([])),
  ])
  const go = (label: string, hint: string, to: string): Command => ({ label, hint, run: () => navigate(to) })
  return [
    ...forms.map(({ name }) => go(name, 'form', `/run/${encodeURIComponent(name)}`)),
    ...views.map(({ name, query }) => go(name, 'view', `/jobs?${query}`)),
    ...endpoints.map(({ name }) => go(name, 'endpoint', `/endpoints/${encodeURIComponent(name)}`)),
    ...accounts.map(({ id, name }) => go(id === name ? id : `${name} (${id})`, 'account', `/operator/accounts/${id}`)),
    ...models.map(({ id }) => go(id, 'model', `/models/${id}`)),
  ]
}

const TYPING_MS = 200
const MIN_TYPED = 2
const JOBS_SHOWN = 5

/** Jobs that have what is typed, as the search of the list finds them. */
function useFoundJobs(text: string): readonly Command[] {
  const [found, setFound] = useState<readonly Command[]>([])
  useEffect(() => {
    setFound([])
    const typed = text.trim()
    if (typed.length < MIN_TYPED || session.value?.signed_in !== true) return
    const abort = new AbortController()
    const timer = setTimeout(async () => {
      try {
        const filter = readFilter(new URLSearchParams({ q: typed }))
        const options = { now: serverNow(), limit: JOBS_SHOWN, signal: abort.signal }
        const { jobs } = await listJobs(filter, options)
        if (!abort.signal.aborted)
          setFound(
            jobs.map((job) => ({
              label: `${jobName(job)} · ${statusWord(job.status).toLowerCase()} · ${shortId(job.id)}`,
              hint: 'job',
              run: () => navigate(`/jobs/${job.id}`),
            })),
          )
      } catch (error) {
        if (!(error instanceof ApiError) && !abort.signal.aborted) throw error
      }
    }, TYPING_MS)
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [text])
  return found
}

const MOST_NAMES = 20

function find(text: string, names: readonly Command[], jobs: readonly Command[]): readonly Command[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const fits = ({ label }: Command) => words.every((word) => label.toLowerCase().includes(word))
  const found = commands().filter(fits)
  if (text.trim() === '') return found
  found.push(...names.filter(fits).slice(0, MOST_NAMES), ...jobs)
  const search = {
    label: `Search jobs for “${text.trim()}”`,
    hint: 'find',
    run: () => navigate(toSearchAddress(text, '/jobs')),
  }
  return [...found, search]
}

export function CommandPalette() {
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const field = useRef<HTMLInputElement>(null)
  const list = useRef<HTMLUListElement>(null)
  const [names, setNames] = useState<readonly Command[]>([])
  const found = find(text, names, useFoundJobs(text))
  const close = () => {
    isPaletteOpen.value = false
  }
  const run = (command: Command | undefined) => {
    close()
    command?.run()
  }
  useEffect(() => {
    field.current?.focus()
    let isGone = false
    void askNames().then((known) => !isGone && setNames(known))
    return () => {
      isGone = true
    }
  }, [])
  useEffect(() => {
    list.current?.children[at]?.scrollIntoView({ block: 'nearest' })
  }, [at])
  function onKeyDown(event: KeyboardEvent): void {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined) {
      event.preventDefault()
      setAt((before) => (before + step + found.length) % Math.max(1, found.length))
    } else if (event.key === 'Enter') {
      event.preventDefault()
      run(found[at])
    }
  }
  return (
    <Dialog title="Commands" onClose={close}>
      <input
        ref={field}
        type="text"
        role="combobox"
        aria-label="Command"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={found.length > 0 ? `palette-${at}` : undefined}
        placeholder="A place, a job, an endpoint, a model, or what to do"
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value)
          setAt(0)
        }}
        onKeyDown={onKeyDown}
      />
      <ul ref={list} id="palette-list" role="listbox" aria-label="Commands" class="palette">
        {found.map((command, index) => (
          <li
            key={`${command.hint} ${command.label}`}
            id={`palette-${index}`}
            role="option"
            aria-selected={index === at}
            onClick={() => run(command)}
            onPointerMove={() => setAt(index)}
          >
            <span class="dim">{command.hint}</span> {toMarkedText(command.label)}
          </li>
        ))}
      </ul>
    </Dialog>
  )
}

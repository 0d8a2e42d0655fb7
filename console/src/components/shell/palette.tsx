/** Commands by name: every place, models and saved forms, what can be done, and a search for jobs with whatever was typed. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { toSearchAddress } from '../../api/filter.ts'
import { listForms } from '../../api/jobs.ts'
import { listModels } from '../../api/models.ts'
import { isHelpOpen, isPaletteOpen } from '../../keys/keys.ts'
import { navigate } from '../../routes.ts'
import { isPaused, setPaused } from '../../state/live/live.ts'
import { theme } from '../../state/preferences.ts'
import { session } from '../../state/session.ts'
import { toMarkedText } from '../../text/marks.ts'
import { Dialog } from '../overlay/dialog.tsx'
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
      : []),
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

/** Of the account, asked for when the palette is opened; without an answer they are left out. */
async function askNames(): Promise<readonly Command[]> {
  const hasModels = session.value?.features.models === true
  const [forms, models] = await Promise.all([
    listForms().then(
      (answer) => answer.forms,
      () => [],
    ),
    hasModels ? listModels().catch(() => []) : [],
  ])
  return [
    ...forms.map(({ name }) => ({
      label: name,
      hint: 'form',
      run: () => navigate(`/run/${encodeURIComponent(name)}`),
    })),
    ...models.map(({ id }) => ({ label: id, hint: 'model', run: () => navigate(`/models/${id}`) })),
  ]
}

const MOST_NAMES = 20

function find(text: string, names: readonly Command[]): readonly Command[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const fits = ({ label }: Command) => words.every((word) => label.toLowerCase().includes(word))
  const found = commands().filter(fits)
  if (text.trim() === '') return found
  found.push(...names.filter(fits).slice(0, MOST_NAMES))
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
  const found = find(text, names)
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
        placeholder="A place, a model, a saved form, or what to do"
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

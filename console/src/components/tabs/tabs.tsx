/** Tabs whose choice is in the address: a link to a tab opens that tab. */
import type { ComponentChildren } from 'preact'
import { useRef } from 'preact/hooks'
import { hrefOf } from '../../routes.ts'
import { Icon } from '../icon.tsx'

interface Tab<Name extends string> {
  readonly name: Name
  readonly label: ComponentChildren
}

interface TabsProps<Name extends string> {
  readonly label: string
  readonly tabs: readonly Tab<Name>[]
  readonly chosen: Name
  readonly onChoose: (name: Name) => void
}

export function Tabs<Name extends string>({ label, tabs, chosen, onChoose }: TabsProps<Name>) {
  const list = useRef<HTMLDivElement>(null)
  function onKeyDown(event: KeyboardEvent): void {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key]
    if (step === undefined) return
    event.preventDefault()
    const at = tabs.findIndex(({ name }) => name === chosen)
    const next = tabs[(at + step + tabs.length) % tabs.length]
    onChoose(next.name)
    list.current?.querySelector<HTMLElement>(`[data-tab="${next.name}"]`)?.focus()
  }
  return (
    <div ref={list} class="tabs" role="tablist" aria-label={label} onKeyDown={onKeyDown}>
      {tabs.map(({ name, label: text }) => (
        <button
          key={name}
          type="button"
          role="tab"
          id={`tab-${name}`}
          data-tab={name}
          aria-selected={chosen === name}
          aria-controls={chosen === name ? `panel-${name}` : undefined}
          tabIndex={chosen === name ? 0 : -1}
          onClick={() => onChoose(name)}
        >
          {text}
        </button>
      ))}
    </div>
  )
}

export function TabPanel({ name, children }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <div role="tabpanel" id={`panel-${name}`} aria-labelledby={`tab-${name}`} class="tab-panel">
      {children}
    </div>
  )
}

type Place = readonly [to: string, label: string]

interface SegmentsProps {
  readonly label: string
  readonly places: readonly Place[]
  readonly here: string
}

/** Links in one line of which one is where we are: pages that belong together, or the values of a filter. */
export function PageTabs(props: SegmentsProps) {
  return <Links {...props} kind="page" />
}

/** The values of one filter. */
export function FilterLinks(props: SegmentsProps) {
  return <Links {...props} kind="true" />
}

function Links({ label, places, here, kind }: SegmentsProps & { readonly kind: 'page' | 'true' }) {
  return (
    <nav class={`segments ${kind === 'page' ? 'page-tabs' : ''}`} aria-label={label}>
      {places.map(([to, word]) => (
        <a key={to} href={hrefOf(to)} aria-current={to === here ? kind : undefined}>
          {word}
        </a>
      ))}
    </nav>
  )
}

interface StateFilterProps {
  /** The word for each state; '' is every state. */
  readonly states: Readonly<Record<string, string>>
  readonly state: string
  readonly addressOf: (state: string) => string
  readonly onReload: () => void
}

/** Above a list: which state to show, and a button that asks for the list again. */
export function StateFilter({ states, state, addressOf, onReload }: StateFilterProps) {
  return (
    <div class="filter-bar">
      <FilterLinks
        label="State"
        places={Object.entries(states).map(([value, word]) => [addressOf(value), word])}
        here={addressOf(state)}
      />
      <button type="button" class="button small" onClick={onReload}>
        <Icon name="again" /> Ask again
      </button>
    </div>
  )
}

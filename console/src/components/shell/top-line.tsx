/** Search, how live the page is, who is here and what is left to spend. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError } from '../../api/client.ts'
import { toSearchAddress } from '../../api/filter.ts'
import { suggest } from '../../api/search.ts'
import { isPaletteOpen, useKeys } from '../../keys/keys.ts'
import { lazy } from '../../lazy.tsx'
import { hrefOf, navigate, path, query } from '../../routes.ts'
import { draining, isPaused, type LiveWord, liveWord, newBuild, setPaused } from '../../state/live/live.ts'
import { session } from '../../state/session.ts'
import { Icon } from '../icon.tsx'
import { Money, Words } from '../text.tsx'

export function TopLine() {
  const { account, operator } = session.value ?? {}
  return (
    <header class="top-line">
      {account != null && <SearchBox />}
      {account != null && (
        <button
          type="button"
          class="button small palette-button"
          title="Commands (⌘K or Ctrl K)"
          onClick={() => {
            isPaletteOpen.value = true
          }}
        >
          ⌘K<span class="unseen"> Commands</span>
        </button>
      )}
      <div class="top-line-space" />
      {account != null && <LiveDot />}
      {account != null && (
        <a
          class="account-line"
          href={hrefOf(session.value?.features.accounts === true ? '/account/usage' : '/settings')}
        >
          <span class="unseen">{session.value?.features.accounts === true ? 'Usage of ' : 'Account '}</span>
          <Words text={account.name} /> {account.credit !== null && <Money usd={account.credit.available_usd} />}
        </a>
      )}
      {account == null && operator === true && <span class="account-line">operator</span>}
    </header>
  )
}

export function NoticeLine() {
  if (draining.value)
    return (
      <p class="notice-line" role="status">
        The service is being stopped: what runs is finished or handed back, what waits keeps its place.
      </p>
    )
  if (newBuild.value === null) return null
  return (
    <p class="notice-line" role="status">
      There is a new version of this page.{' '}
      <button type="button" class="link-button" onClick={() => window.location.reload()}>
        Reload
      </button>
    </p>
  )
}

export const Palette = lazy(() => import('./palette.tsx').then(({ CommandPalette }) => CommandPalette))

const TITLES: Readonly<Record<LiveWord, string>> = {
  live: 'Changes are shown as they happen. Press to pause.',
  paused: 'Nothing changes by itself. Press to go on.',
  reconnecting: 'The connection is being made again; meanwhile the page asks every ten seconds.',
  offline: 'This browser has no network.',
}

/** How what is shown stands to what is: live, paused, coming back, or without a network. */
function LiveDot() {
  const { value: word } = liveWord
  useKeys({
    '.': () => {
      setPaused(!isPaused.value)
      return true
    },
  })
  return (
    <button
      type="button"
      class="live-dot"
      data-live={word}
      title={TITLES[word]}
      aria-pressed={word === 'paused'}
      onClick={() => setPaused(!isPaused.value)}
    >
      <span class="dot" aria-hidden="true" />
      <span role="status">{word}</span>
    </button>
  )
}

/** Finds jobs by an id, `key=value`, a metadata value, an error code, a node class or a weights file; an id leads to its job. */
function SearchBox() {
  const field = useRef<HTMLInputElement>(null)
  const { offered, onTyped } = useSuggestions()
  const searched = path.value === '/jobs' ? (query.value.get('q') ?? '') : ''
  // Told to the field at every drawing, which would otherwise put back what was searched last.
  const [typed, setTyped] = useState<string | null>(null)
  useEffect(() => setTyped(null), [searched])
  useKeys({
    '/': () => {
      field.current?.focus()
      field.current?.select()
      return true
    },
  })
  function submit(event: Event): void {
    event.preventDefault()
    navigate(toSearchAddress(field.current?.value ?? '', '/jobs'))
    setTyped(null)
    field.current?.blur()
  }
  return (
    <form class="search" role="search" onSubmit={submit}>
      <Icon name="search" />
      <input
        ref={field}
        type="search"
        aria-label="Search jobs"
        placeholder="Search jobs: id, scene=4321, error, node, weights"
        value={typed ?? searched}
        spellcheck={false}
        list="search-words"
        onInput={({ currentTarget: { value } }) => {
          setTyped(value)
          onTyped(value)
        }}
        onKeyDown={(event) => {
          if (event.key === 'Escape') field.current?.blur()
        }}
      />
      <datalist id="search-words">
        {offered.map((words) => (
          <option key={words} value={words} />
        ))}
      </datalist>
      <kbd aria-hidden="true">/</kbd>
    </form>
  )
}

const TYPING_MS = 150

/** How what is typed may go on: the last word, with what stands before it. */
function useSuggestions() {
  const [offered, setOffered] = useState<readonly string[]>([])
  const asked = useRef({ timer: 0, abort: new AbortController() })
  function onTyped(text: string): void {
    clearTimeout(asked.current.timer)
    asked.current.abort.abort()
    const abort = new AbortController()
    const at = text.lastIndexOf(' ') + 1
    const timer = window.setTimeout(() => void ask(text.slice(0, at), text.slice(at), abort.signal), TYPING_MS)
    asked.current = { timer, abort }
  }
  /** Without an answer the search is as good as without suggestions. */
  async function ask(before: string, word: string, signal: AbortSignal): Promise<void> {
    if (word === '') return setOffered([])
    try {
      const words = await suggest(word, signal)
      if (!signal.aborted) setOffered(words.map((each) => before + each))
    } catch (error) {
      if (!(error instanceof ApiError) && !signal.aborted) throw error
    }
  }
  return { offered, onTyped }
}

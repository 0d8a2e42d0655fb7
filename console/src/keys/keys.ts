/**
 * Who hears a key: the page that was opened last, then whoever stands around it. Keys of a single letter never fire inside a field, in
 * a dialog, or when they are switched off.
 */
import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { navigate } from '../routes.ts'
import { shortcuts } from '../state/preferences.ts'

export const isPaletteOpen = signal(false)
export const isHelpOpen = signal(false)

/** False: not for me, ask the next. */
type KeyHandler = (event: KeyboardEvent) => boolean | undefined
type KeyHandlers = Readonly<Record<string, KeyHandler>>

const layers: { current: KeyHandlers }[] = []
const GO_MS = 1500
let goUntil = 0

export function useKeys(handlers: KeyHandlers): void {
  const layer = useRef(handlers)
  layer.current = handlers
  useEffect(() => {
    layers.push(layer)
    return () => {
      layers.splice(layers.indexOf(layer), 1)
    }
  }, [])
}

function isField(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false
  if (target.isContentEditable || target.shadowRoot !== null) return true
  if (target instanceof HTMLInputElement) return !['checkbox', 'radio', 'button', 'range'].includes(target.type)
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement
}

/** Space and Enter belong to whatever has the focus. */
function isForControl(word: string, target: EventTarget | null): boolean {
  if (word !== ' ' && word !== 'Enter') return false
  if (!(target instanceof HTMLElement)) return false
  const isLink = target instanceof HTMLAnchorElement
  return (
    target.matches('button, input, summary, [role="menuitem"], [role="tab"], [role="option"]') ||
    (word === 'Enter' && isLink)
  )
}

function onKeyDown(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing) return
  const word = toKeyWord(event)
  if (word === null) return
  const isPlain = !word.startsWith('mod+')
  if (isPlain && document.querySelector('dialog[open]') !== null) return
  if (isPlain && isField(event.target) && word !== 'Escape') return
  if (isSingleLetter(word) && shortcuts.value === 'off') return
  if (isForControl(word, event.target)) return
  if (isPlain && goUntil > event.timeStamp) {
    goUntil = 0
    const to = GO[word]
    if (to !== undefined) {
      event.preventDefault()
      navigate(to)
      return
    }
  }
  if (word === 'g') {
    goUntil = event.timeStamp + GO_MS
    return
  }
  for (const { current } of layers.toReversed()) {
    const handler = current[word]
    if (handler === undefined || handler(event) === false) continue
    event.preventDefault()
    return
  }
}

export function followKeys(): void {
  document.addEventListener('keydown', onKeyDown)
}

/** Which key does what, for the handler and for the page that explains them. */
interface KeyRow {
  readonly keys: string
  readonly deed: string
}

const GO: Readonly<Record<string, string>> = {
  h: '/',
  j: '/jobs',
  r: '/run',
  a: '/gallery',
  m: '/models',
  u: '/account/usage',
  o: '/operator',
}

export const KEY_ROWS: readonly KeyRow[] = [
  { keys: '/', deed: 'search' },
  { keys: '⌘K  Ctrl K', deed: 'commands' },
  { keys: 'g then h j r a m u o', deed: 'go to Home, Jobs, Run, gAllery, Models, Usage, Operator' },
  { keys: 'j  k', deed: 'down, up' },
  { keys: 'Enter', deed: 'open' },
  { keys: 'Space', deed: 'peek' },
  { keys: 'x  Shift X', deed: 'select, up to here' },
  { keys: '[  ]', deed: 'previous, next in the filter' },
  { keys: 'c', deed: 'cancel' },
  { keys: 'r', deed: 'run again' },
  { keys: 'd', deed: 'download' },
  { keys: '1 … 6', deed: 'tabs' },
  { keys: '.', deed: 'pause and resume what is live' },
  { keys: 'f', deed: 'find a node' },
  { keys: '⌘↵  Ctrl ↵', deed: 'run' },
  { keys: '?', deed: 'these keys' },
  { keys: 'Esc', deed: 'back' },
]

interface KeyPress {
  readonly key: string
  readonly ctrlKey: boolean
  readonly metaKey: boolean
  readonly altKey: boolean
}

/** `mod+k`, `j`, `Enter`; null: not ours. */
function toKeyWord({ key, ctrlKey, metaKey, altKey }: KeyPress): string | null {
  if (altKey) return null
  if (ctrlKey || metaKey) return key === 'Enter' || key === 'k' || key === 'K' ? `mod+${key.toLowerCase()}` : null
  return key
}

/** Keys that a screen reader or a voice may send by chance: they can be switched off. */
function isSingleLetter(word: string): boolean {
  return word.length === 1 && word !== ' '
}

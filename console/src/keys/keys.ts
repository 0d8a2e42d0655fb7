/**
 * Who hears a key: the page that was opened last, then whoever stands around it. Keys of a single letter never fire inside a field, in
 * a dialog, or when they are switched off.
 */
import { useEffect, useRef } from 'preact/hooks'
import { navigate } from '../routes.ts'
import { shortcuts } from '../state/preferences.ts'
import { GO, isSingleLetter, toKeyWord } from './key-map.ts'

/** False: not for me, ask the next. */
type KeyHandler = (event: KeyboardEvent) => boolean | undefined
export type KeyHandlers = Readonly<Record<string, KeyHandler>>

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

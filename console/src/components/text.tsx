/** What pages are written with: words that others wrote, ids, figures, what can be copied or saved, and short messages. */
import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { second, serverNow } from '../state/clock.ts'
import { zoneName } from '../state/preferences.ts'
import { formatAgo, formatDateTime, formatRunning, formatSpan, formatUsd } from '../text/format.ts'
import { toSegments } from '../text/marks.ts'
import { Icon } from './icon.tsx'

/** A text that somebody else wrote: as text, with hidden characters shown as marks, and in a direction of its own. */
export function Words({ text, isBlock = false }: { readonly text: string; readonly isBlock?: boolean }) {
  const segments = toSegments(text, { isBlock })
  if (segments.length === 1 && !segments[0].isMark) return <bdi>{text}</bdi>
  return (
    <bdi>
      {segments.map((segment, index) =>
        segment.isMark ? (
          <span key={index} class="mark">
            {segment.text}
          </span>
        ) : (
          segment.text
        ),
      )}
    </bdi>
  )
}

interface CopyButtonProps {
  readonly text: string | (() => string | Promise<string>)
  readonly label: string
  /** Shown beside the drawing; else the label is for screen readers and the pointer alone. */
  readonly word?: string
}

const SHOWN_MS = 1500

export function CopyButton({ text, label, word }: CopyButtonProps) {
  const [isDone, setDone] = useState(false)
  async function copy(event: Event): Promise<void> {
    event.preventDefault()
    event.stopPropagation()
    const content = typeof text === 'string' ? text : await text()
    if (await copyText(content)) {
      setDone(true)
      setTimeout(() => setDone(false), SHOWN_MS)
    } else showToast('This browser lets nothing be copied here: it needs https, or this machine itself.')
  }
  return (
    <button
      type="button"
      class={word === undefined ? 'icon-button' : 'button small'}
      aria-label={word === undefined ? label : undefined}
      title={label}
      onClick={(event) => void copy(event)}
    >
      <Icon name={isDone ? 'check' : 'copy'} />
      {word !== undefined && <span>{isDone ? 'Copied' : word}</span>}
    </button>
  )
}

/** The clipboard is there only on https and on this machine; elsewhere the older way may still work. */
async function copyText(text: string): Promise<boolean> {
  if (navigator.clipboard !== undefined) {
    try {
      await navigator.clipboard.writeText(text)
      return true
    } catch {
      return false
    }
  }
  const field = document.createElement('textarea')
  field.value = text
  field.className = 'unseen'
  document.body.append(field)
  field.select()
  const isDone = document.execCommand('copy')
  field.remove()
  return isDone
}

/** An id: its beginning and end, the whole of it to copy. */
export function shortId(id: string): string {
  return id.length <= 13 ? id : `${id.slice(0, 8)}…${id.slice(-4)}`
}

export function Id({ id, label = 'id' }: { readonly id: string; readonly label?: string }) {
  return (
    <span class="id">
      <code title={id}>{shortId(id)}</code>
      <CopyButton text={id} label={`Copy ${label}`} />
    </span>
  )
}

/** Pairs of a name and what it is; those without a value are left out. */
export function KeyValue({ pairs }: { readonly pairs: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="key-value">
      {pairs
        .filter(([, value]) => value !== null && value !== undefined && value !== false)
        .map(([name, value]) => (
          <div key={name} class="key-value-pair">
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  )
}

// Numbers as the console writes them: spans, moments, money, sizes.

/** From one moment to another, or to now, then ticking. */
export function Duration({ from, to }: { readonly from: string | null; readonly to: string | null }) {
  if (from === null) return <span class="dim">–</span>
  if (to !== null) return <span class="number">{formatSpan(Date.parse(to) - Date.parse(from))}</span>
  const now = Math.max(second.value, serverNow() - 1000)
  return <span class="number">{formatRunning(now - Date.parse(from))}</span>
}

export function Ago({ at }: { readonly at: string }) {
  const moment = Date.parse(at)
  return (
    <time class="number" dateTime={at} title={`${formatDateTime(moment, zoneName())} ${zoneName()}`}>
      {formatAgo(moment, second.value)}
    </time>
  )
}

export function Moment({ at }: { readonly at: string }) {
  return (
    <time class="number" dateTime={at} title={zoneName()}>
      {formatDateTime(Date.parse(at), zoneName())}
    </time>
  )
}

export function Money({ usd }: { readonly usd: string | null }) {
  return usd === null ? <span class="dim">–</span> : <span class="money">{formatUsd(usd)}</span>
}

/** Gives the person a file that this page made. */
export function saveText(name: string, text: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  document.body.append(link)
  link.click()
  link.remove()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}

const TOAST_MS = 6000

const shown = signal<string | null>(null)
let timer: ReturnType<typeof setTimeout> | undefined

/** A word about what the page does not show by itself. Polite, one at a time, gone after a while. */
export function showToast(text: string): void {
  clearTimeout(timer)
  shown.value = text
  timer = setTimeout(() => {
    shown.value = null
  }, TOAST_MS)
}

export function ToastHost() {
  return (
    <div class="toast-place" role="status" aria-live="polite">
      {shown.value !== null && (
        <p class="toast">
          <Words text={shown.value} />
        </p>
      )}
    </div>
  )
}

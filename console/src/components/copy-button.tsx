import { useState } from 'preact/hooks'
import { Icon } from './icon.tsx'
import { showToast } from './overlay/toast.tsx'

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

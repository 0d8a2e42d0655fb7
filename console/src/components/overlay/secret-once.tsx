/** A secret that is shown once: nothing keeps it. The way on opens only when it was copied, or somebody says that they have it. */
import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { CopyButton } from '../copy-button.tsx'
import { Dialog } from './dialog.tsx'

interface Shown {
  readonly what: 'key' | 'secret'
  readonly secret: string
  readonly about: ComponentChildren
}

const shown = signal<Shown | null>(null)

/** In front of whatever page asked for it; gone from memory when the dialog is closed. */
export function showSecretOnce(what: Shown['what'], secret: string, about: ComponentChildren = null): void {
  shown.value = { what, secret, about }
}

export function SecretOnceHost() {
  const { value } = shown
  if (value === null) return null
  const close = () => {
    shown.value = null
  }
  return (
    <Dialog title={`The new ${value.what}`} onClose={close}>
      <p>Copy it now: it is shown this once and kept nowhere.</p>
      {value.about !== null && <p class="dim">{value.about}</p>}
      <p class="key-once">
        <code>{value.secret}</code>
      </p>
      <div class="dialog-deeds">
        <CopyButton text={value.secret} label={`Copy the ${value.what}`} word="Copy" />
        <button type="button" class="button primary" onClick={close}>
          I have it
        </button>
      </div>
    </Dialog>
  )
}

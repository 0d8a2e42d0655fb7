/** A question in front of the page. The element is the browser's own: it holds the focus, closes with Esc, and gives the focus back. */
import { signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { ApiError } from '../../api/client.ts'
import { toMarkedText } from '../../text/marks.ts'
import { Icon } from '../icon.tsx'
import { ErrorBox } from '../state.tsx'
import { CopyButton } from '../text.tsx'

interface Question {
  readonly title: string
  readonly text: ComponentChildren
  /** What the button says: the deed itself, with the number. */
  readonly deed: string
  readonly isDangerous: boolean
  readonly settle: (isMeant: boolean) => void
}

const asked = signal<Question | null>(null)

/** Asks before something that cannot be taken back, and says how much it will hit. */
export function confirm(question: Omit<Question, 'settle'>): Promise<boolean> {
  return new Promise((resolve) => {
    asked.value?.settle(false)
    asked.value = {
      ...question,
      settle(isMeant) {
        asked.value = null
        resolve(isMeant)
      },
    }
  })
}

export function ConfirmHost() {
  const { value: question } = asked
  if (question === null) return null
  return (
    <Dialog title={question.title} onClose={() => question.settle(false)}>
      <div class="dialog-text">{question.text}</div>
      <div class="dialog-deeds">
        <button type="button" class="button" onClick={() => question.settle(false)}>
          Back
        </button>
        <button
          type="button"
          class={`button ${question.isDangerous ? 'danger-full' : 'primary'}`}
          onClick={() => question.settle(true)}
          autoFocus
        >
          {question.deed}
        </button>
      </div>
    </Dialog>
  )
}

interface DialogProps {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
  readonly size?: 'small' | 'large'
}

export function Dialog({ title, onClose, children, size = 'small' }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const from = document.activeElement
    const dialog = element.current
    dialog?.showModal()
    return () => {
      dialog?.close()
      if (from instanceof HTMLElement && from.isConnected) from.focus()
    }
  }, [])
  return (
    <dialog
      ref={element}
      class={`dialog dialog-${size}`}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
      onMouseDown={(event) => {
        if (event.target === element.current) onClose()
      }}
    >
      <div class="dialog-body">
        <header class="dialog-head">
          <h2>{title}</h2>
          <button type="button" class="icon-button" aria-label="Close" onClick={onClose}>
            <Icon name="cross" />
          </button>
        </header>
        {children}
      </div>
    </dialog>
  )
}

/** A secret that is shown once: nothing keeps it. The way on opens only when it was copied, or somebody says that they have it. */
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

const DAY_SECONDS = 86_400
const OVERLAPS: Readonly<Record<number, string>> = {
  0: 'ends at once',
  3600: 'counts for an hour more',
  [DAY_SECONDS]: 'counts for a day more',
  [7 * DAY_SECONDS]: 'counts for a week more',
}

interface RotateSecretProps {
  readonly name: string
  /** What stays as it is. */
  readonly about: string
  readonly rotate: (overlapSeconds: number) => Promise<{ readonly secret: string }>
  readonly onClose: () => void
  readonly onRotated: (secret: string, about: string) => void
}

/** A new secret for a key or a webhook, with time for programs to change over. */
export function RotateSecret({ name, about, rotate, onClose, onRotated }: RotateSecretProps) {
  const overlap = useSignal(DAY_SECONDS)
  const error = useSignal<ApiError | null>(null)
  async function submit(event: Event): Promise<void> {
    event.preventDefault()
    try {
      const { secret } = await rotate(overlap.value)
      onRotated(secret, `The former secret ${OVERLAPS[overlap.value]}.`)
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown
      error.value = thrown
    }
  }
  return (
    <Dialog title={`A new secret for “${toMarkedText(name)}”`} onClose={onClose}>
      <form class="stack" onSubmit={(event) => void submit(event)}>
        <p>{about} Its former secret</p>
        <fieldset class="choice choice-column">
          <legend class="unseen">The former secret</legend>
          {Object.entries(OVERLAPS).map(([seconds, words]) => (
            <label key={seconds}>
              <input
                type="radio"
                name="overlap"
                checked={overlap.value === Number(seconds)}
                onChange={() => {
                  overlap.value = Number(seconds)
                }}
              />
              {words}
            </label>
          ))}
        </fieldset>
        {error.value !== null && <ErrorBox error={error.value} />}
        <div class="dialog-deeds">
          <button type="button" class="button" onClick={onClose}>
            Back
          </button>
          <button type="submit" class="button primary">
            Rotate
          </button>
        </div>
      </form>
    </Dialog>
  )
}

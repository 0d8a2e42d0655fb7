/** Asks before something that cannot be taken back, and says how much it will hit. */
import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { Dialog } from './dialog.tsx'

interface Question {
  readonly title: string
  readonly text: ComponentChildren
  /** What the button says: the deed itself, with the number. */
  readonly deed: string
  readonly isDangerous: boolean
  readonly settle: (isMeant: boolean) => void
}

const asked = signal<Question | null>(null)

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

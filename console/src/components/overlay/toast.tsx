/** A word about what the page does not show by itself. Polite, one at a time, gone after a while. */
import { signal } from '@preact/signals'
import { Words } from '../words.tsx'

const SHOWN_MS = 6000

const shown = signal<string | null>(null)
let timer: ReturnType<typeof setTimeout> | undefined

export function showToast(text: string): void {
  clearTimeout(timer)
  shown.value = text
  timer = setTimeout(() => {
    shown.value = null
  }, SHOWN_MS)
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

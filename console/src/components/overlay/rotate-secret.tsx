/** A new secret for a key or a webhook, with time for programs to change over. */
import { useSignal } from '@preact/signals'
import { ApiError } from '../../api/client.ts'
import { toMarkedText } from '../../text/marks.ts'
import { ErrorBox } from '../error-box.tsx'
import { Dialog } from './dialog.tsx'

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

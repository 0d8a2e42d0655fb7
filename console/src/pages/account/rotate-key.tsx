/** A new secret for a key, with time for programs to change over. */
import { useSignal } from '@preact/signals'
import { type KeyRow, rotateKey } from '../../api/account.ts'
import { ApiError } from '../../api/client.ts'
import { ErrorBox } from '../../components/error-box.tsx'
import { Dialog } from '../../components/overlay/dialog.tsx'
import { toMarkedText } from '../../text/marks.ts'

const DAY_SECONDS = 86_400
const OVERLAPS: Readonly<Record<number, string>> = {
  0: 'ends at once',
  3600: 'counts for an hour more',
  [DAY_SECONDS]: 'counts for a day more',
  [7 * DAY_SECONDS]: 'counts for a week more',
}

/** One that was made without a name is called by its id. */
export function keyName({ name, id }: KeyRow): string {
  return name === '' ? id : name
}

interface RotateKeyProps {
  readonly row: KeyRow
  readonly onClose: () => void
  readonly onRotated: (secret: string, about: string) => void
}

export function RotateKey({ row, onClose, onRotated }: RotateKeyProps) {
  const overlap = useSignal(DAY_SECONDS)
  const error = useSignal<ApiError | null>(null)
  async function rotate(event: Event): Promise<void> {
    event.preventDefault()
    try {
      const { secret } = await rotateKey(row.id, overlap.value)
      onRotated(secret, `The former secret ${OVERLAPS[overlap.value]}.`)
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown
      error.value = thrown
    }
  }
  return (
    <Dialog title={`A new secret for “${toMarkedText(keyName(row))}”`} onClose={onClose}>
      <form class="stack" onSubmit={(event) => void rotate(event)}>
        <p>The key keeps its name, scopes and history. Its former secret</p>
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

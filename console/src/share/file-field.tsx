/** A file of the visitor: it goes along with the run, and nowhere before. */
import { useState } from 'preact/hooks'
import { Icon } from '../components/icon.tsx'
import type { FileFieldProps } from '../form/input-field.tsx'
import { toMarkedText } from '../text/marks.ts'
import { readFile } from './share-api.ts'

// What a call may bring along.
const MAX_BYTES = 10_000_000

export function FileField({ input, id, text, onText, about, isWrong }: FileFieldProps) {
  // Of the file that was chosen here; one that was given before has none.
  const [chosen, setChosen] = useState({ name: '', text: '' })
  const [problem, setProblem] = useState<string | null>(null)
  const label = toMarkedText(input.title === '' ? input.name : input.title)
  const media = input.kind === 'mask' ? 'image' : input.kind
  const accept = media === 'image' || media === 'video' || media === 'audio' ? `${media}/*` : undefined
  async function take(file: File | undefined): Promise<void> {
    if (file === undefined) return
    const isLarge = file.size > MAX_BYTES
    setProblem(isLarge ? 'This file is too large: at most 10 MB.' : null)
    if (isLarge) return
    const content = await readFile(file)
    setChosen({ name: file.name, text: content })
    onText(content)
  }
  return (
    <div
      class="file-control"
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault()
        void take(event.dataTransfer?.files[0])
      }}
    >
      {text !== '' && (
        <span class="file-chip">
          {/^data:image\/(?:png|jpeg|webp|gif);/.test(text) && <img class="file-chip-picture" src={text} alt="" />}
          <span class="file-chip-name">{chosen.text === text ? toMarkedText(chosen.name) : 'as before'}</span>
          <button
            type="button"
            class="icon-button"
            aria-label={`Remove the file of ${label}`}
            onClick={() => onText('')}
          >
            <Icon name="cross" />
          </button>
        </span>
      )}
      <label class="button small">
        <Icon name="up" /> {text === '' ? 'Choose a file' : 'Another file'}
        <input
          id={id}
          type="file"
          class="unseen"
          accept={accept}
          aria-label={`File for ${label}`}
          aria-invalid={isWrong}
          aria-describedby={about}
          onChange={({ currentTarget }) => {
            void take(currentTarget.files?.[0])
            // The same file can be chosen again.
            currentTarget.value = ''
          }}
        />
      </label>
      {problem !== null && (
        <p class="failed-text" role="alert">
          {problem}
        </p>
      )}
    </div>
  )
}

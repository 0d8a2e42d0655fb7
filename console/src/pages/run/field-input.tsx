/** One input of a workflow, drawn by its kind. */
import { useState } from 'preact/hooks'
import { assetReference, uploadFile } from '../../api/assets.ts'
import { ApiError } from '../../api/client.ts'
import { Icon } from '../../components/icon.tsx'
import { Words } from '../../components/words.tsx'
import { type Field, randomSeed } from '../../form/workflow-fields.ts'
import { toMarkedText } from '../../text/marks.ts'
import { files, keyOf, reading, setFile, setTyped, textOf } from './run-state.ts'

export function FieldInput({ field }: { readonly field: Field }) {
  const id = `field-${field.node}-${field.input}`.replaceAll(/\W/g, '-')
  const problem = reading.value.problems.get(keyOf(field)) ?? null
  const about = [field.tooltip !== null && `${id}-about`, problem !== null && `${id}-problem`].filter(Boolean).join(' ')
  return (
    <div class={`field field-${field.kind}`}>
      <label for={id}>
        <Words text={field.input} />
      </label>
      <div class="field-control">
        <Control field={field} id={id} isWrong={problem !== null} about={about === '' ? undefined : about} />
      </div>
      {problem !== null && (
        <p id={`${id}-problem`} class="failed-text field-note">
          {problem}
        </p>
      )}
      {field.tooltip !== null && (
        <p id={`${id}-about`} class="dim field-note">
          <Words text={field.tooltip} />
        </p>
      )}
    </div>
  )
}

interface ControlProps {
  readonly field: Field
  readonly id: string
  readonly isWrong: boolean
  readonly about: string | undefined
}

function Control({ field, id, isWrong, about }: ControlProps) {
  const text = textOf(field)
  const set = (value: string) => setTyped(field, value)
  const common = { id, 'aria-invalid': isWrong, 'aria-describedby': about }
  if (field.kind === 'multiline' || field.kind === 'json')
    return (
      <textarea
        {...common}
        rows={Math.min(8, Math.max(2, Math.ceil(text.length / 60)))}
        spellcheck={false}
        value={text}
        onInput={(event) => set(event.currentTarget.value)}
      />
    )
  if (field.kind === 'switch')
    return (
      <input
        {...common}
        type="checkbox"
        checked={text === 'true'}
        onChange={(event) => set(String(event.currentTarget.checked))}
      />
    )
  if (field.kind === 'choice') {
    const choices = field.choices.includes(text) ? field.choices : [text, ...field.choices]
    return (
      <select {...common} value={text} onChange={(event) => set(event.currentTarget.value)}>
        {choices.map((choice) => (
          <option key={choice} value={choice}>
            {toMarkedText(choice)}
          </option>
        ))}
      </select>
    )
  }
  if (field.kind === 'file') return <FileControl field={field} id={id} about={about} />
  const isNumber = field.kind === 'integer' || field.kind === 'number'
  return (
    <>
      <input
        {...common}
        type="text"
        inputMode={field.kind === 'integer' ? 'numeric' : isNumber ? 'decimal' : 'text'}
        spellcheck={false}
        value={text}
        onInput={(event) => set(event.currentTarget.value)}
      />
      {field.isSeed && (
        <button
          type="button"
          class="icon-button"
          aria-label="Random seed"
          title="Random seed"
          onClick={() => set(randomSeed(field, crypto.getRandomValues(new BigUint64Array(1))[0]))}
        >
          <Icon name="again" />
        </button>
      )}
    </>
  )
}

/** A file of this machine is uploaded at once; the name of one that the service has can be typed. */
function FileControl({ field, id, about }: Pick<ControlProps, 'field' | 'id' | 'about'>) {
  const [state, setState] = useState<'idle' | 'busy' | string>('idle')
  const chosen = files.value.get(keyOf(field))
  async function take(file: File | undefined): Promise<void> {
    if (file === undefined) return
    setState('busy')
    try {
      const asset = await uploadFile(file)
      setFile(field, { name: asset.name, valueText: assetReference(asset.id) })
      setState('idle')
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      setState(error.message)
    }
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
      <input
        id={id}
        type="text"
        aria-describedby={about}
        value={chosen?.name ?? textOf(field)}
        onInput={(event) => setTyped(field, event.currentTarget.value)}
      />
      <label class="button small">
        {state === 'busy' ? 'Uploading…' : 'Choose a file'}
        <input
          type="file"
          class="unseen"
          aria-label={`File for ${toMarkedText(field.input)}`}
          accept={field.media === null ? undefined : `${field.media}/*`}
          onChange={(event) => void take(event.currentTarget.files?.[0])}
        />
      </label>
      {state !== 'idle' && state !== 'busy' && <p class="failed-text field-note">{state}</p>}
    </div>
  )
}

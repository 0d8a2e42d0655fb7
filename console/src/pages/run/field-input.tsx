/** One input of a workflow, drawn by its kind. */
import { useState } from 'preact/hooks'
import { assetReference, uploadFile } from '../../api/assets.ts'
import { ApiError } from '../../api/client.ts'
import { Words } from '../../components/words.tsx'
import { FieldControl } from '../../form/field-control.tsx'
import type { Field } from '../../form/workflow-fields.ts'
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
        {field.kind === 'file' ? (
          <FileControl field={field} id={id} about={about === '' ? undefined : about} />
        ) : (
          <FieldControl
            {...{ field, id, isWrong: problem !== null, about: about === '' ? undefined : about }}
            text={textOf(field)}
            onText={(text) => setTyped(field, text)}
          />
        )}
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

/** A file of this machine is uploaded at once; the name of one that the service has can be typed. */
interface FileControlProps {
  readonly field: Field
  readonly id: string
  readonly about: string | undefined
}

function FileControl({ field, id, about }: FileControlProps) {
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

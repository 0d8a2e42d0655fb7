/** One input of a workflow, drawn by its kind; with several values, as a list of them. */
import { useState } from 'preact/hooks'
import { assetReference, uploadFile } from '../../api/assets.ts'
import { ApiError } from '../../api/client.ts'
import { FileButtons } from '../../components/files/file-buttons.tsx'
import { Icon } from '../../components/icon.tsx'
import { type MediaItem, Thumb } from '../../components/media/media.tsx'
import { Words } from '../../components/text.tsx'
import { joinValues, splitValues } from '../../form/batch.ts'
import { FieldControl, FieldShell } from '../../form/field-control.tsx'
import { type Field, randomSeed } from '../../form/workflow-fields.ts'
import { plural } from '../../text/format.ts'
import { toMarkedText } from '../../text/marks.ts'
import {
  addFiles,
  type ChosenFile,
  filesOf,
  hasSeveral,
  keyOf,
  reading,
  refusalOf,
  removeFile,
  setSeveral,
  setTyped,
  textOf,
} from './run-state.ts'

/** `key`: the node and the input. */
export function fieldId(key: string): string {
  return `field-${key}`.replaceAll(/\W/g, '-')
}

export function FieldInput({ field }: { readonly field: Field }) {
  const id = fieldId(keyOf(field))
  const problem = reading.value.problems.get(keyOf(field)) ?? refusalOf(field)
  const isSeveral = hasSeveral(field)
  return (
    <FieldShell
      id={id}
      kind={field.kind}
      name={field.input}
      beside={field.kind !== 'switch' && <SeveralButton field={field} />}
      problem={problem}
      about={field.tooltip}
    >
      {(about) => {
        if (field.kind === 'file') return <FileInput field={field} id={id} about={about} />
        const common = { field, id, isWrong: problem !== null, about }
        if (isSeveral) return <ValueList {...common} />
        return <FieldControl {...common} text={textOf(field)} onText={(text) => setTyped(field, text)} />
      }}
    </FieldShell>
  )
}

/** One job for each value. */
function SeveralButton({ field }: { readonly field: Field }) {
  const isSeveral = hasSeveral(field)
  return (
    <button
      type="button"
      class="link-button several"
      title={isSeveral ? 'Back to one value' : 'Several values: one job for each'}
      onClick={() => setSeveral(field, !isSeveral)}
    >
      {isSeveral ? 'one' : 'several'}
      <span class="unseen">
        {' '}
        {isSeveral ? 'value' : 'values'} for {toMarkedText(field.input)}
      </span>
    </button>
  )
}

interface ValueListProps {
  readonly field: Field
  readonly id: string
  readonly isWrong: boolean
  readonly about: string | undefined
}

const MAX_ROWS = 10
const RANDOM_AT_ONCE = 4

function ValueList({ field, id, isWrong, about }: ValueListProps) {
  const text = textOf(field)
  const values = splitValues(field.kind, text)
  const isLong = field.kind === 'multiline' || field.kind === 'json'
  const set = (next: readonly string[]) => setTyped(field, joinValues(field.kind, next))
  if (field.kind === 'choice')
    return (
      <div id={id} class="choice-list" role="group" aria-label={toMarkedText(field.input)} aria-describedby={about}>
        {field.choices.map((choice) => (
          <label key={choice}>
            <input
              type="checkbox"
              checked={values.includes(choice)}
              onChange={(event) =>
                set(event.currentTarget.checked ? [...values, choice] : values.filter((value) => value !== choice))
              }
            />
            {toMarkedText(choice)}
          </label>
        ))}
      </div>
    )
  return (
    <div class="value-list">
      <textarea
        id={id}
        aria-invalid={isWrong}
        aria-describedby={[about, `${id}-count`].filter(Boolean).join(' ')}
        spellcheck={false}
        rows={Math.min(MAX_ROWS, Math.max(3, text.split('\n').length + 1))}
        value={text}
        onInput={(event) => setTyped(field, event.currentTarget.value)}
      />
      <span id={`${id}-count`} class="dim row">
        {plural(values.length, 'value')}, {isLong ? 'a line of --- between two' : 'one in a line'}
        {field.isSeed && (
          <button
            type="button"
            class="button small"
            onClick={() =>
              set([
                ...values,
                ...[...crypto.getRandomValues(new BigUint64Array(RANDOM_AT_ONCE))].map((random) =>
                  randomSeed(field, random),
                ),
              ])
            }
          >
            <Icon name="plus" /> {RANDOM_AT_ONCE} random
          </button>
        )}
      </span>
    </div>
  )
}

interface FileInputProps {
  readonly field: Field
  readonly id: string
  readonly about: string | undefined
}

function toChosen(assetId: string, name: string, type: string): ChosenFile {
  return { assetId, name, type, valueText: assetReference(assetId) }
}

/** A file for an input: uploaded at once, or one that the service has; its name can be typed as well. */
function FileInput({ field, id, about }: FileInputProps) {
  const [state, setState] = useState<'idle' | 'busy' | string>('idle')
  const chosen = filesOf(field)
  async function upload(list: readonly File[]): Promise<void> {
    setState('busy')
    try {
      for (const file of list) {
        const { id: assetId, name } = await uploadFile(file)
        addFiles(field, [toChosen(assetId, name, file.type)])
      }
      setState('idle')
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      setState(error.message)
    }
  }
  const take = (assets: readonly MediaItem[]) =>
    addFiles(
      field,
      assets.map(({ asset_id: assetId, name, content_type: type }) => toChosen(assetId, name, type)),
    )
  return (
    <>
      <FileButtons
        label={field.input}
        media={field.media}
        isSeveral={hasSeveral(field)}
        isBusy={state === 'busy'}
        onFiles={(list) => void upload(list)}
        onAssets={take}
      >
        {chosen.length === 0 ? (
          <input
            id={id}
            type="text"
            spellcheck={false}
            aria-describedby={about}
            value={textOf(field)}
            onInput={(event) => setTyped(field, event.currentTarget.value)}
          />
        ) : (
          <span class="file-chips" id={id}>
            {chosen.map((file) => (
              <span key={file.assetId} class="file-chip">
                <span class="file-chip-picture">
                  <Thumb assetId={file.assetId} type={file.type} alt="" width={64} />
                </span>
                <span class="file-chip-name">
                  <Words text={file.name} />
                </span>
                <button
                  type="button"
                  class="icon-button"
                  aria-label={`Take away ${toMarkedText(file.name)}`}
                  onClick={() => removeFile(field, file.assetId)}
                >
                  <Icon name="cross" />
                </button>
              </span>
            ))}
          </span>
        )}
      </FileButtons>
      {state !== 'idle' && state !== 'busy' && <p class="failed-text field-note">{state}</p>}
    </>
  )
}

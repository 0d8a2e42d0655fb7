/** A file for an input: uploaded at once, or one that the service has; its name can be typed as well. */
import { useState } from 'preact/hooks'
import { assetReference, uploadFile } from '../../api/assets.ts'
import { ApiError } from '../../api/client.ts'
import { FileButtons } from '../../components/files/file-buttons.tsx'
import { Icon } from '../../components/icon.tsx'
import type { MediaItem } from '../../components/media/media-item.ts'
import { Thumb } from '../../components/media/thumb.tsx'
import { Words } from '../../components/words.tsx'
import type { Field } from '../../form/workflow-fields.ts'
import { toMarkedText } from '../../text/marks.ts'
import { addFiles, type ChosenFile, filesOf, hasSeveral, removeFile, setTyped, textOf } from './run-state.ts'

interface FileInputProps {
  readonly field: Field
  readonly id: string
  readonly about: string | undefined
}

function toChosen(assetId: string, name: string, type: string): ChosenFile {
  return { assetId, name, type, valueText: assetReference(assetId) }
}

export function FileInput({ field, id, about }: FileInputProps) {
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

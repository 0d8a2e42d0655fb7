/** A file as an input of a call: an upload, a file that the service has, or an address that it fetches. */
import { useState } from 'preact/hooks'
import { uploadFile } from '../../api/assets.ts'
import { ApiError } from '../../api/client.ts'
import { FileButtons } from '../../components/files/file-buttons.tsx'
import type { FileFieldProps } from '../../form/input-field.tsx'

export function FileField({ input, id, text, onText, about, isWrong }: FileFieldProps) {
  const [state, setState] = useState<'idle' | 'busy' | string>('idle')
  const media = input.kind === 'mask' ? 'image' : input.kind
  async function upload(file: File): Promise<void> {
    setState('busy')
    try {
      onText((await uploadFile(file)).id)
      setState('idle')
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      setState(error.message)
    }
  }
  return (
    <>
      <FileButtons
        label={input.title === '' ? input.name : input.title}
        media={media === 'image' || media === 'video' || media === 'audio' ? media : null}
        isBusy={state === 'busy'}
        onFiles={([file]) => void upload(file)}
        onAssets={([asset]) => onText(asset.asset_id)}
      >
        <input
          id={id}
          type="text"
          spellcheck={false}
          placeholder="https://… or a file"
          aria-invalid={isWrong}
          aria-describedby={about}
          value={text}
          onInput={(event) => onText(event.currentTarget.value)}
        />
      </FileButtons>
      {state !== 'idle' && state !== 'busy' && <p class="failed-text field-note">{state}</p>}
    </>
  )
}

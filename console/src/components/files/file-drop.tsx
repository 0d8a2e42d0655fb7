/** Takes files by dropping or by choosing them. */
import { useRef, useState } from 'preact/hooks'

interface FileDropProps {
  readonly label: string
  readonly hint: string
  readonly accept: string
  readonly isSeveral?: boolean
  readonly onFiles: (files: readonly File[]) => void
}

export function FileDrop({ label, hint, accept, isSeveral = false, onFiles }: FileDropProps) {
  const field = useRef<HTMLInputElement>(null)
  const [isOver, setOver] = useState(false)
  const take = (list: FileList | null | undefined) => {
    const files = [...(list ?? [])].slice(0, isSeveral ? undefined : 1)
    if (files.length > 0) onFiles(files)
  }
  return (
    <div
      class={`file-drop ${isOver ? 'over' : ''}`}
      onDragOver={(event) => {
        event.preventDefault()
        setOver(true)
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault()
        setOver(false)
        take(event.dataTransfer?.files)
      }}
    >
      <button type="button" class="button" onClick={() => field.current?.click()}>
        {label}
      </button>
      <span class="dim">{hint}</span>
      <input
        ref={field}
        type="file"
        class="unseen"
        tabIndex={-1}
        aria-label={label}
        accept={accept}
        multiple={isSeveral}
        onChange={(event) => {
          take(event.currentTarget.files)
          event.currentTarget.value = ''
        }}
      />
    </div>
  )
}

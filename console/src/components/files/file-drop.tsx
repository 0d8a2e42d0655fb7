/** Takes a file by dropping it, by choosing it, or by pasting text. */
import { useRef, useState } from 'preact/hooks'

interface FileDropProps {
  readonly label: string
  readonly hint: string
  readonly accept: string
  readonly onFile: (file: File) => void
}

export function FileDrop({ label, hint, accept, onFile }: FileDropProps) {
  const field = useRef<HTMLInputElement>(null)
  const [isOver, setOver] = useState(false)
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
        const file = event.dataTransfer?.files[0]
        if (file !== undefined) onFile(file)
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
        onChange={(event) => {
          const file = event.currentTarget.files?.[0]
          if (file !== undefined) onFile(file)
          event.currentTarget.value = ''
        }}
      />
    </div>
  )
}

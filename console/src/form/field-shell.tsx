/** What stands around every control: its name, what is wrong with it, what it is about. */
import type { ComponentChildren } from 'preact'
import { Words } from '../components/words.tsx'

interface FieldShellProps {
  readonly id: string
  readonly kind: string
  readonly name: string
  /** Beside the name: that it is needed, a deed. */
  readonly beside?: ComponentChildren
  readonly problem: string | null
  readonly about: string | null
  /** Given what describes the control, for its `aria-describedby`. */
  readonly children: (describedBy: string | undefined) => ComponentChildren
}

export function FieldShell({ id, kind, name, beside, problem, about, children }: FieldShellProps) {
  const described = [about !== null && `${id}-about`, problem !== null && `${id}-problem`].filter(Boolean).join(' ')
  return (
    <div class={`field field-${kind}`}>
      <div class="field-name">
        <label for={id}>
          <Words text={name} />
        </label>
        {beside}
      </div>
      <div class="field-control">{children(described === '' ? undefined : described)}</div>
      {problem !== null && (
        <p id={`${id}-problem`} class="failed-text field-note">
          {problem}
        </p>
      )}
      {about !== null && (
        <p id={`${id}-about`} class="dim field-note">
          <Words text={about} />
        </p>
      )}
    </div>
  )
}

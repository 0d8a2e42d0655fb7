/** The control of one field, by its kind. What is typed is text; what it means is read elsewhere. */
import type { ComponentChildren } from 'preact'
import { Icon } from '../components/icon.tsx'
import { Words } from '../components/text.tsx'
import { toMarkedText } from '../text/marks.ts'
import { type Field, randomSeed } from './workflow-fields.ts'

interface FieldControlProps {
  readonly field: Field
  readonly id: string
  readonly text: string
  readonly onText: (text: string) => void
  readonly isWrong: boolean
  readonly about: string | undefined
  /** It may be left empty. */
  readonly isOptional?: boolean
}

export function FieldControl({ field, id, text, onText, isWrong, about, isOptional = false }: FieldControlProps) {
  const set = onText
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
    const shown = isOptional ? new Set(['', text, ...field.choices]) : new Set([...field.choices, text])
    const choices = isOptional || field.choices.includes(text) ? [...shown] : [text, ...field.choices]
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

/** What stands around every control: its name, what is wrong with it, what it is about. */
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

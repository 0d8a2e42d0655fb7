/** The control of one field, by its kind. What is typed is text; what it means is read elsewhere. */
import { Icon } from '../components/icon.tsx'
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

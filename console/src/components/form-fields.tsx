/** Fields of small forms, each bound to a signal. */
import type { Signal } from '@preact/signals'

interface TextFieldProps {
  readonly id: string
  readonly label: string
  readonly value: Signal<string>
  readonly placeholder?: string
}

export function TextField({ id, label, value, placeholder }: TextFieldProps) {
  return (
    <>
      <label for={id}>{label}</label>
      <input
        id={id}
        type="text"
        required
        maxLength={200}
        placeholder={placeholder}
        value={value.value}
        onInput={(event) => {
          value.value = event.currentTarget.value
        }}
      />
    </>
  )
}

interface ChoiceProps<Name extends string> {
  readonly id: string
  readonly label: string
  readonly value: Signal<Name>
  readonly options: readonly (readonly [Name, string])[]
}

export function Choice<Name extends string>({ id, label, value, options }: ChoiceProps<Name>) {
  return (
    <>
      <label for={id}>{label}</label>
      <select
        id={id}
        value={value.value}
        onChange={(event) => {
          value.value = event.currentTarget.value as Name
        }}
      >
        {options.map(([name, words]) => (
          <option key={name} value={name}>
            {words}
          </option>
        ))}
      </select>
    </>
  )
}

export function Switch({ value, label }: { readonly value: Signal<boolean>; readonly label: string }) {
  return (
    <label>
      <input
        type="checkbox"
        checked={value.value}
        onChange={(event) => {
          value.value = event.currentTarget.checked
        }}
      />
      {label}
    </label>
  )
}

interface JsonFieldProps {
  readonly id: string
  readonly label: string
  readonly value: Signal<string>
}

export function JsonField({ id, label, value }: JsonFieldProps) {
  return (
    <>
      <label for={id}>{label}</label>
      <textarea
        id={id}
        rows={5}
        spellcheck={false}
        value={value.value}
        onInput={(event) => {
          value.value = event.currentTarget.value
        }}
      />
    </>
  )
}

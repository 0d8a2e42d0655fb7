/** One input of an endpoint: drawn by its type, read as JSON text. An empty field is left out of the call. */
import type { FunctionComponent } from 'preact'
import { type JsonValue, stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import type { EndpointInput } from '../api/endpoints.ts'
import { FieldControl, FieldShell } from './field-control.tsx'
import { type Field, type FieldKind, randomSeed, readField } from './workflow-fields.ts'

/** A value as a field shows it. */
export function shown(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'string' ? value : stringifyLosslessJson(value)
}

/** What a form knows of an input. */
export type FormInput = Omit<EndpointInput, 'places' | 'example'> & Partial<Pick<EndpointInput, 'example'>>

/** What the form begins with: a call without it would have the same; what is needed begins with the example. */
export function beginText({ type, required, default: preset, example }: FormInput): string {
  if (type === 'seed' || type === 'file') return ''
  return shown(preset ?? (required ? example : undefined))
}

function toField(input: FormInput): Field {
  const bound = (value: JsonValue | undefined) => (value === undefined || value === null ? null : shown(value))
  return {
    node: '',
    input: input.name,
    kind: kindOf(input),
    valueText: '""',
    choices: (input.choices ?? []).map(shown),
    min: bound(input.minimum),
    max: bound(input.maximum),
    tooltip: input.description,
    media: null,
    isSeed: input.type === 'seed',
  }
}

function kindOf({ type, multiline, open: isOpen }: FormInput): FieldKind {
  if (type === 'text') return multiline === true ? 'multiline' : 'text'
  if (type === 'boolean') return 'switch'
  if (type === 'choice') return isOpen === true ? 'text' : 'choice'
  return type === 'seed' ? 'integer' : type
}

interface Reading {
  /** JSON text; null: left out. */
  readonly text: string | null
  readonly problem: string | null
}

/** What the service alone can judge (patterns, files) is left to it. */
export function readText(input: FormInput, typed: string): Reading {
  const fail = (problem: string): Reading => ({ text: null, problem })
  if (typed === '') return input.required ? fail('needed') : { text: null, problem: null }
  const choice = input.choices?.find((each) => shown(each) === typed)
  if (choice !== undefined) return { text: stringifyLosslessJson(choice), problem: null }
  const { length } = [...typed]
  if (input.max_length !== undefined && length > input.max_length) return fail(`at most ${input.max_length} characters`)
  if (length < (input.min_length ?? 0)) return fail(`at least ${input.min_length} characters`)
  const read = readField(toField(input), typed)
  return 'problem' in read ? fail(read.problem) : { text: read.valueText, problem: null }
}

interface InputFieldProps {
  readonly input: FormInput
  /** Takes a file, in the way of the page. */
  readonly File: FunctionComponent<FileFieldProps>
  readonly text: string
  readonly problem: string | null
  readonly onText: (text: string) => void
}

export function InputField({ input, File, text, problem, onText }: InputFieldProps) {
  const { name, title, description, type, required } = input
  const id = `input-${name}`
  const field = toField(input)
  return (
    <FieldShell
      id={id}
      kind={type === 'file' ? 'file' : field.kind}
      name={title === '' ? name : title}
      beside={required && <span class="dim needed">needed</span>}
      problem={problem}
      about={description === '' ? null : description}
    >
      {(about) => {
        const common = { id, text, onText, about, isWrong: problem !== null }
        if (type === 'file') return <File input={input} {...common} />
        if (type === 'seed') return <SeedField field={field} {...common} />
        if (input.open !== true) return <FieldControl field={field} {...common} isOptional={!required} />
        return (
          <>
            <input
              id={id}
              type="text"
              list={`${id}-known`}
              value={text}
              aria-invalid={problem !== null}
              aria-describedby={about}
              onInput={(event) => onText(event.currentTarget.value)}
            />
            <datalist id={`${id}-known`}>
              {field.choices.map((choice) => (
                <option key={choice} value={choice} />
              ))}
            </datalist>
          </>
        )
      }}
    </FieldShell>
  )
}

export type FileFieldProps = ControlProps & { readonly input: FormInput }

interface ControlProps {
  readonly id: string
  readonly text: string
  readonly onText: (text: string) => void
  readonly about: string | undefined
  readonly isWrong: boolean
}

function SeedField({ field, ...common }: ControlProps & { readonly field: Field }) {
  const isRandom = common.text === ''
  return (
    <div class="seed-field">
      <label class="row">
        <input
          id={isRandom ? common.id : undefined}
          type="checkbox"
          checked={isRandom}
          aria-label={`Random ${field.input} for each run`}
          onChange={({ currentTarget: { checked } }) =>
            common.onText(checked ? '' : randomSeed(field, crypto.getRandomValues(new BigUint64Array(1))[0] >> 11n))
          }
        />
        random for each run
      </label>
      {!isRandom && <FieldControl field={field} {...common} />}
    </div>
  )
}

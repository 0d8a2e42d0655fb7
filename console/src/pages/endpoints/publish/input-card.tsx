/** One proposed input or output with everything that its author may say of it. */
import { useId } from 'preact/hooks'
import type { InputType } from '../../../api/endpoints.ts'
import { Icon } from '../../../components/icon.tsx'
import { FieldShell } from '../../../form/field-control.tsx'
import { shown } from '../../../form/input-field.tsx'
import { toMarkedText } from '../../../text/marks.ts'
import { change, type InputRow, type OutputRow } from './publish-state.ts'

interface TextFieldProps {
  readonly label: string
  readonly about?: string
  readonly text: string
  readonly hint?: string
  readonly isLong?: boolean
  readonly problem: string | null
  readonly onText: (text: string) => void
}

export function TextField({ label, about = '', text, hint = '', isLong = false, problem, onText }: TextFieldProps) {
  const id = useId()
  return (
    <FieldShell id={id} kind="text" name={label} problem={problem} about={about === '' ? null : about}>
      {(described) => {
        const common = { id, value: text, placeholder: hint, 'aria-invalid': problem !== null }
        return isLong ? (
          <textarea
            {...common}
            rows={2}
            aria-describedby={described}
            onInput={(event) => onText(event.currentTarget.value)}
          />
        ) : (
          <input
            {...common}
            type="text"
            aria-describedby={described}
            onInput={(event) => onText(event.currentTarget.value)}
          />
        )
      }}
    </FieldShell>
  )
}

const TYPE_WORDS: Readonly<Record<InputType, string>> = {
  text: 'text',
  integer: 'whole number',
  number: 'number',
  seed: 'seed, random when left out',
  boolean: 'yes or no',
  choice: 'one of several',
  file: 'file',
}

interface InputCardProps {
  readonly row: InputRow
  readonly at: number
  readonly isFirst: boolean
  readonly isLast: boolean
  readonly onRow: (part: Partial<InputRow>) => void
  readonly onMove: (by: 1 | -1) => void
  /** What the service said of this member; '' is the input itself. */
  readonly problemAt: (member: string) => string | null
}

export function InputCard({ row, at, isFirst, isLast, onRow, onMove, problemAt }: InputCardProps) {
  const { source, isTaken, name, isRequired, preset } = row
  const called = toMarkedText(name)
  const word = source.type === 'file' ? (source.kind ?? 'file') : TYPE_WORDS[source.type]
  const hasDefault = !isRequired && source.type !== 'seed' && source.type !== 'file'
  return (
    <li class={`card input-card ${isTaken ? '' : 'left-out'}`} aria-label={called}>
      <div class="input-head">
        <label class="row">
          <input
            type="checkbox"
            checked={isTaken}
            aria-label={`Take ${called}`}
            onChange={(event) => onRow({ isTaken: event.currentTarget.checked })}
          />
          <strong>{called}</strong> <span class="dim">{word}</span>
        </label>
        <span>
          <button
            type="button"
            class="icon-button"
            disabled={isFirst}
            aria-label={`Move ${called} up, from place ${at + 1}`}
            onClick={() => onMove(-1)}
          >
            <Icon name="up" />
          </button>
          <button
            type="button"
            class="icon-button"
            disabled={isLast}
            aria-label={`Move ${called} down, from place ${at + 1}`}
            onClick={() => onMove(1)}
          >
            <Icon name="down" />
          </button>
        </span>
      </div>
      {isTaken && (
        <>
          <TextField label="Name" text={name} onText={(next) => onRow({ name: next })} problem={problemAt('')} />
          <TextField label="Title" text={row.title} onText={(title) => onRow({ title })} problem={problemAt('title')} />
          <label class="row">
            <input
              type="checkbox"
              checked={isRequired}
              onChange={({ currentTarget: { checked } }) =>
                onRow({ isRequired: checked, ...(!checked && preset === '' && { preset: shown(source.example) }) })
              }
            />
            Callers must give it
          </label>
          {hasDefault && (
            <TextField
              label="Default"
              text={preset}
              isLong={source.multiline === true}
              onText={(next) => onRow({ preset: next })}
              problem={problemAt('default')}
            />
          )}
          <Narrow row={row} onRow={onRow} problemAt={problemAt} />
        </>
      )}
    </li>
  )
}

type Member = readonly [key: 'minimum' | 'maximum' | 'maxLength' | 'pattern', member: string, label: string]

const BOUNDS: readonly Member[] = [
  ['minimum', 'minimum', 'Least'],
  ['maximum', 'maximum', 'Most'],
]
const MEMBERS: Readonly<Partial<Record<InputType, readonly Member[]>>> = {
  text: [
    ['maxLength', 'max_length', 'Most characters'],
    ['pattern', 'pattern', 'Pattern'],
  ],
  integer: BOUNDS,
  number: BOUNDS,
  seed: BOUNDS,
}
const OWN = { minimum: 'minimum', maximum: 'maximum', maxLength: 'max_length', pattern: 'pattern' } as const

function Narrow({ row, onRow, problemAt }: Pick<InputCardProps, 'row' | 'onRow' | 'problemAt'>) {
  const { source } = row
  const members = MEMBERS[source.type] ?? []
  const problem = [...members.map(([, member]) => member), 'choices', 'description'].some(
    (at) => problemAt(at) !== null,
  )
  return (
    <details open={problem || undefined}>
      <summary>Description and bounds</summary>
      <TextField
        label="Description"
        isLong
        text={row.description}
        onText={(description) => onRow({ description })}
        problem={problemAt('description')}
      />
      {members.map(([key, member, label]) => (
        <TextField
          key={key}
          label={label}
          text={row[key]}
          hint={shown(source[OWN[key]])}
          onText={(text) => onRow({ [key]: text })}
          problem={problemAt(member)}
        />
      ))}
      {['choice', 'text', 'integer', 'number'].includes(source.type) && (
        <TextField
          label="Only these choices"
          about="One in a line; empty: all"
          isLong
          text={row.choices}
          hint={(source.choices ?? []).slice(0, 4).map(shown).join('\n')}
          onText={(choices) => onRow({ choices })}
          problem={problemAt('choices')}
        />
      )}
    </details>
  )
}

interface OutputRowsProps {
  readonly outputs: readonly OutputRow[]
  readonly problemAt: (field: string) => string | null
}

export function OutputRows({ outputs, problemAt }: OutputRowsProps) {
  const set = (index: number, part: Partial<OutputRow>) =>
    change({ outputs: outputs.with(index, { ...outputs[index], ...part }) })
  const taken = outputs.filter(({ isTaken }) => isTaken).length
  return (
    <section aria-labelledby="outputs-head">
      <h2 id="outputs-head">Outputs</h2>
      {outputs.length === 0 && <p class="dim">This workflow saves nothing.</p>}
      {outputs.map((row, index) => (
        <div key={row.source.node_id} class="output-row">
          <input
            type="checkbox"
            aria-label={`Give out ${toMarkedText(row.source.title)}`}
            checked={row.isTaken}
            disabled={row.isTaken && taken === 1}
            onChange={(event) => set(index, { isTaken: event.currentTarget.checked })}
          />
          <TextField
            label={`${row.source.kind} of ${row.source.title}`}
            text={row.name}
            onText={(name) => set(index, { name })}
            problem={problemAt(`outputs.${row.name}`)}
          />
        </div>
      ))}
    </section>
  )
}

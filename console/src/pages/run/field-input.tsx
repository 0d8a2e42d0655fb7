/** One input of a workflow, drawn by its kind; with several values, as a list of them. */
import { Icon } from '../../components/icon.tsx'
import { joinValues, splitValues } from '../../form/batch.ts'
import { FieldControl } from '../../form/field-control.tsx'
import { FieldShell } from '../../form/field-shell.tsx'
import { type Field, randomSeed } from '../../form/workflow-fields.ts'
import { plural } from '../../text/format.ts'
import { toMarkedText } from '../../text/marks.ts'
import { FileInput } from './file-input.tsx'
import { hasSeveral, keyOf, reading, setSeveral, setTyped, textOf } from './run-state.ts'

export function FieldInput({ field }: { readonly field: Field }) {
  const id = `field-${field.node}-${field.input}`.replaceAll(/\W/g, '-')
  const problem = reading.value.problems.get(keyOf(field)) ?? null
  const isSeveral = hasSeveral(field)
  return (
    <FieldShell
      id={id}
      kind={field.kind}
      name={field.input}
      beside={field.kind !== 'switch' && <SeveralButton field={field} />}
      problem={problem}
      about={field.tooltip}
    >
      {(about) => {
        if (field.kind === 'file') return <FileInput field={field} id={id} about={about} />
        const common = { field, id, isWrong: problem !== null, about }
        if (isSeveral) return <ValueList {...common} />
        return <FieldControl {...common} text={textOf(field)} onText={(text) => setTyped(field, text)} />
      }}
    </FieldShell>
  )
}

/** One job for each value. */
function SeveralButton({ field }: { readonly field: Field }) {
  const isSeveral = hasSeveral(field)
  return (
    <button
      type="button"
      class="link-button several"
      title={isSeveral ? 'Back to one value' : 'Several values: one job for each'}
      onClick={() => setSeveral(field, !isSeveral)}
    >
      {isSeveral ? 'one' : 'several'}
      <span class="unseen">
        {' '}
        {isSeveral ? 'value' : 'values'} for {toMarkedText(field.input)}
      </span>
    </button>
  )
}

interface ValueListProps {
  readonly field: Field
  readonly id: string
  readonly isWrong: boolean
  readonly about: string | undefined
}

const MAX_ROWS = 10
const RANDOM_AT_ONCE = 4

function ValueList({ field, id, isWrong, about }: ValueListProps) {
  const text = textOf(field)
  const values = splitValues(field.kind, text)
  const isLong = field.kind === 'multiline' || field.kind === 'json'
  const set = (next: readonly string[]) => setTyped(field, joinValues(field.kind, next))
  if (field.kind === 'choice')
    return (
      <div id={id} class="choice-list" role="group" aria-label={toMarkedText(field.input)} aria-describedby={about}>
        {field.choices.map((choice) => (
          <label key={choice}>
            <input
              type="checkbox"
              checked={values.includes(choice)}
              onChange={(event) =>
                set(event.currentTarget.checked ? [...values, choice] : values.filter((value) => value !== choice))
              }
            />
            {toMarkedText(choice)}
          </label>
        ))}
      </div>
    )
  return (
    <div class="value-list">
      <textarea
        id={id}
        aria-invalid={isWrong}
        aria-describedby={[about, `${id}-count`].filter(Boolean).join(' ')}
        spellcheck={false}
        rows={Math.min(MAX_ROWS, Math.max(3, text.split('\n').length + 1))}
        value={text}
        onInput={(event) => setTyped(field, event.currentTarget.value)}
      />
      <span id={`${id}-count`} class="dim row">
        {plural(values.length, 'value')}, {isLong ? 'a line of --- between two' : 'one in a line'}
        {field.isSeed && (
          <button
            type="button"
            class="button small"
            onClick={() =>
              set([
                ...values,
                ...[...crypto.getRandomValues(new BigUint64Array(RANDOM_AT_ONCE))].map((random) =>
                  randomSeed(field, random),
                ),
              ])
            }
          >
            <Icon name="plus" /> {RANDOM_AT_ONCE} random
          </button>
        )}
      </span>
    </div>
  )
}

/** One model to try: a form from its schema, the price before the run, the call to take along. */
import { useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { isJsonObject, type JsonValue } from '../../../../lib/json/lossless-json.ts'
import { ApiError } from '../../api/client.ts'
import { type Estimate, estimateModel, getModelSchema, type ModelAnswer, runModel } from '../../api/models.ts'
import { ErrorBox } from '../../components/error-box.tsx'
import { Icon } from '../../components/icon.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Skeleton } from '../../components/skeleton.tsx'
import { Words } from '../../components/words.tsx'
import { FieldControl } from '../../form/field-control.tsx'
import { readSchemaFields, type SchemaField, toSchemaFields } from '../../form/schema-fields.ts'
import { showValue } from '../../form/workflow-fields.ts'
import { useKeys } from '../../keys/keys.ts'
import { hrefOf } from '../../routes.ts'
import { useResource } from '../../state/resource.ts'
import { formatUsd } from '../../text/format.ts'
import { CopyAs } from './copy-as.tsx'
import { ModelResult } from './model-result.tsx'

const PAUSE_MS = 400

export function ModelPage({ provider = '', model = '' }: Readonly<Record<string, string>>) {
  const id = `${provider}/${model}`
  const resource = useResource(`model ${id}`, (signal) => getModelSchema(id, signal))
  return (
    <section class="page model">
      <a class="dim back" href={hrefOf('/models')}>
        ← Models
      </a>
      <h1>
        <Words text={id} />
      </h1>
      <Loaded resource={resource} skeleton={<Skeleton rows={6} />}>
        {(schema) => <Playground key={id} id={id} schema={schema} />}
      </Loaded>
    </section>
  )
}

function Playground({ id, schema }: { readonly id: string; readonly schema: JsonValue }) {
  const fields = useMemo(() => toSchemaFields(schema), [schema])
  const typed = useSignal<ReadonlyMap<string, string>>(new Map())
  const answer = useSignal<ModelAnswer | null>(null)
  const error = useSignal<ApiError | null>(null)
  const isBusy = useSignal(false)
  const controller = useRef<AbortController | null>(null)
  const { text, problems } = readSchemaFields(fields, typed.value)
  const estimate = useEstimate(id, problems.size === 0 ? text : null)
  const about = isJsonObject(schema) && typeof schema['description'] === 'string' ? schema['description'] : null
  useEffect(() => () => controller.current?.abort(), [])

  async function run(): Promise<void> {
    if (isBusy.value || problems.size > 0) return
    isBusy.value = true
    error.value = null
    controller.current = new AbortController()
    try {
      answer.value = await runModel(id, text, controller.current.signal)
    } catch (thrown) {
      if (thrown instanceof ApiError) error.value = thrown
    } finally {
      isBusy.value = false
    }
  }
  useKeys({
    'mod+enter': () => {
      void run()
      return true
    },
  })
  return (
    <div class="run-body">
      <form
        class="run-form"
        onSubmit={(event) => {
          event.preventDefault()
          void run()
        }}
      >
        {about !== null && (
          <p class="dim">
            <Words text={about} />
          </p>
        )}
        <div class="card">
          {fields.map((field) => (
            <OneField
              key={field.name}
              schemaField={field}
              text={typed.value.get(field.name)}
              problem={typed.value.has(field.name) ? (problems.get(field.name) ?? null) : null}
              onText={(value) => {
                typed.value = new Map(typed.value).set(field.name, value)
              }}
            />
          ))}
          {fields.length === 0 && <p class="dim">This model takes no input.</p>}
        </div>
        {error.value !== null && <ErrorBox error={error.value} />}
        <div class="run-deeds">
          <button type="submit" class="button primary" disabled={isBusy.value || problems.size > 0}>
            <Icon name="play" /> {isBusy.value ? 'Running…' : 'Run'} <kbd aria-hidden="true">⌘↵</kbd>
          </button>
          {isBusy.value && (
            <button type="button" class="button" onClick={() => controller.current?.abort()}>
              Stop waiting
            </button>
          )}
          <span class="price" role="status">
            {estimate}
          </span>
          <span class="top-line-space" />
          <CopyAs id={id} inputText={text} />
        </div>
      </form>
      <ModelResult answer={answer.value} isBusy={isBusy.value} />
    </div>
  )
}

/** Asked a moment after the last key. */
function useEstimate(id: string, inputText: string | null): string {
  const shown = useSignal('')
  useEffect(() => {
    if (inputText === null) {
      shown.value = ''
      return
    }
    let isGone = false
    const timer = setTimeout(() => {
      estimateModel(id, inputText).then(
        (estimate) => {
          if (!isGone) shown.value = priceText(estimate)
        },
        () => {
          if (!isGone) shown.value = ''
        },
      )
    }, PAUSE_MS)
    return () => {
      isGone = true
      clearTimeout(timer)
    }
  }, [id, inputText])
  return shown.value
}

function priceText({ source, amount, min_amount: least, max_amount: most }: Estimate): string {
  if (source === 'exact' && amount !== undefined) return `${formatUsd(amount)}`
  if (source === 'estimated' && least !== undefined && most !== undefined)
    return `${formatUsd(least)} to ${formatUsd(most)}`
  return 'price not known before the run'
}

interface OneFieldProps {
  readonly schemaField: SchemaField
  readonly text: string | undefined
  readonly problem: string | null
  readonly onText: (text: string) => void
}

function OneField({ schemaField, text, problem, onText }: OneFieldProps) {
  const { name, field, isRequired } = schemaField
  const id = `field-${name}`.replaceAll(/\W/g, '-')
  const shown = text ?? (field.valueText === '' ? '' : showValue(field))
  return (
    <div class={`field field-${field.kind}`}>
      <label for={id}>
        <Words text={name} />
        {isRequired && <span class="dim"> needed</span>}
      </label>
      <div class="field-control">
        <FieldControl
          {...{ field, id, text: shown, onText, isWrong: problem !== null }}
          about={field.tooltip === null ? undefined : `${id}-about`}
        />
      </div>
      {problem !== null && <p class="failed-text field-note">{problem}</p>}
      {field.tooltip !== null && (
        <p id={`${id}-about`} class="dim field-note">
          <Words text={field.tooltip} />
        </p>
      )}
    </div>
  )
}

/** One model to try: a form from its schema, the price before the run, the call to take along. */
import { useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { indentJson } from '../../../../lib/json/indent-json.ts'
import { ApiError } from '../../api/client.ts'
import {
  type Estimate,
  estimateModel,
  getModelSchema,
  listModels,
  type ModelAnswer,
  type ModelSchema,
  runModel,
} from '../../api/models.ts'
import { ErrorBox, Loaded, Skeleton } from '../../components/state.tsx'
import { Words } from '../../components/text.tsx'
import { type ClientLines, CopyAs, curlLines, needsKey, RunBar, serviceAddress } from '../../form/run-bar.tsx'
import { beginDraft, draftOfText, readDraft } from '../../form/schema/schema-draft.ts'
import { toSchemaTree } from '../../form/schema/schema-tree.ts'
import { SchemaForm } from '../../form/schema-form.tsx'
import { lazy } from '../../lazy.tsx'
import { hash, hrefOf, setHash } from '../../routes.ts'
import { useResource } from '../../state/resource.ts'
import { formatUsd, plural } from '../../text/format.ts'
import { ModelResult } from './model-result.tsx'

const JsonPane = lazy(() => import('../../form/json-pane.tsx').then((module) => module.JsonPane))

export function ModelPage({ provider = '', model = '' }: Readonly<Record<string, string>>) {
  const id = `${provider}/${model}`
  const resource = useResource(`model ${id}`, (signal) => getModelSchema(id, signal))
  const row = useResource('models', listModels).data.value?.find((model) => model.id === id)
  return (
    <section class="page model">
      <a class="dim back" href={hrefOf('/models')}>
        ← Models
      </a>
      <h1>
        <Words text={id} />
      </h1>
      {row?.is_runnable === false && (
        <p class="warning" role="status">
          It cannot be run here: <Words text={row.why_not ?? 'it is not offered'} />.
        </p>
      )}
      {row?.price_confirmed === false && (
        <p class="dim">
          No bill of the provider has confirmed the price
          {row.price_source == null ? '' : `, which is from a list of ${row.price_source.date}`}.
        </p>
      )}
      <Loaded resource={resource} skeleton={<Skeleton rows={6} />}>
        {(found) => <Playground key={id} id={id} found={found} mayRun={row?.is_runnable === true} />}
      </Loaded>
    </section>
  )
}

interface PlaygroundProps {
  readonly id: string
  readonly found: ModelSchema
  readonly mayRun: boolean
}

function Playground({ id, found, mayRun }: PlaygroundProps) {
  const tree = useMemo(() => toSchemaTree(found.schema, found.root), [found])
  const draft = useSignal(beginDraft(tree))
  const answer = useSignal<ModelAnswer | null>(null)
  const error = useSignal<ApiError | null>(null)
  const isBusy = useSignal(false)
  const controller = useRef<AbortController | null>(null)
  const { text, problems } = useMemo(() => readDraft(tree, draft.value), [tree, draft.value])
  const isReady = problems.size === 0
  const price = useEstimate(id, isReady && mayRun ? text : null)
  const isJson = hash.value === 'json'
  useEffect(() => () => controller.current?.abort(), [])

  async function run(): Promise<void> {
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
  return (
    <div class="run-body">
      <form class="run-form" onSubmit={(event) => event.preventDefault()}>
        {tree.about !== null && (
          <p class="dim">
            <Words text={tree.about} />
          </p>
        )}
        {isJson ? (
          <JsonPane
            label="Input as JSON"
            text={text}
            onText={(written: string) => {
              const next = draftOfText(tree, written)
              if (next === null) return
              draft.value = next
              setHash('')
            }}
          />
        ) : (
          <div class="card">
            <SchemaForm
              node={tree}
              draft={draft.value}
              path=""
              problems={problems}
              onDraft={(next) => {
                draft.value = next
              }}
            />
            {tree.parts.length === 0 && <p class="dim">This model says nothing of its input: write it as JSON.</p>}
          </div>
        )}
        {error.value !== null && <ErrorBox error={error.value} />}
        <RunBar
          word="Run"
          isReady={isReady && mayRun}
          isBusy={isBusy.value}
          onRun={() => void run()}
          onStop={() => controller.current?.abort()}
          isJson={isJson}
          onJson={(next) => setHash(next ? 'json' : '')}
          price={isReady ? price : `${plural(problems.size, 'input')} to fill in`}
        >
          <CopyAs words={['curl', 'SDK']} lines={() => modelLines(id, text)} />
        </RunBar>
      </form>
      <ModelResult answer={answer.value} isBusy={isBusy.value} />
    </div>
  )
}

function modelLines(id: string, inputText: string): ClientLines {
  return {
    curl: curlLines(`/v2/models/${id}`, inputText),
    SDK: [
      "import { comfy } from '@comfyorg/sdk'",
      `// COMFY_ROUTER_BASE_URL=${serviceAddress()}${needsKey() ? ' and COMFY_API_KEY' : ''} in the environment`,
      `const { data } = await comfy.models.run('${id}', ${indentJson(inputText)})`,
    ].join('\n'),
  }
}

/** What a call would cost, asked a moment after the last key. */
const PAUSE_MS = 400

/** null: the input is not whole yet. */
function useEstimate(id: string, inputText: string | null): string {
  const [shown, setShown] = useState('')
  useEffect(() => {
    if (inputText === null) return setShown('')
    let isGone = false
    const show = (text: string) => !isGone && setShown(text)
    const timer = setTimeout(() => {
      estimateModel(id, inputText).then(
        (estimate) => show(priceText(estimate)),
        () => show(''),
      )
    }, PAUSE_MS)
    return () => {
      isGone = true
      clearTimeout(timer)
    }
  }, [id, inputText])
  return shown
}

function priceText({ source, amount, min_amount: least, max_amount: most }: Estimate): string {
  if (source === 'exact' && amount !== undefined) return formatUsd(amount)
  if (source === 'estimated' && least !== undefined && most !== undefined)
    return `${formatUsd(least)} to ${formatUsd(most)}`
  return 'price not known before the run'
}

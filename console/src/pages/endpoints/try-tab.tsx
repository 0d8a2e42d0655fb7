/** The form of a version, and what its runs come to. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { indentJson } from '../../../../lib/json/indent-json.ts'
import { type JsonObject, stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'
import { ApiError } from '../../api/client.ts'
import { type Endpoint, type EndpointInput, getRun, runEndpoint, type Version } from '../../api/endpoints.ts'
import { Icon } from '../../components/icon.tsx'
import { ErrorBox } from '../../components/state.tsx'
import { CopyButton } from '../../components/text.tsx'
import { beginText, InputField, readText, shown } from '../../form/input-field.tsx'
import { query } from '../../routes.ts'
import { plural } from '../../text/format.ts'
import { RunResult } from '../run/run-result.tsx'
import { may, NotAllowed } from './endpoints-page.tsx'
import { FileField } from './file-field.tsx'

interface TryTabProps {
  readonly endpoint: Endpoint
  readonly version: Version
}

type Texts = ReadonlyMap<string, string>

function begin(inputs: readonly EndpointInput[]): Texts {
  return new Map(inputs.map((input) => [input.name, beginText(input)]))
}

function ofInputs(inputs: readonly EndpointInput[], given: JsonObject): Texts {
  return new Map(inputs.map((input) => [input.name, shown(given[input.name])]))
}

export function TryTab({ endpoint, version }: TryTabProps) {
  const { inputs } = version
  const texts = useSignal<Texts>(begin(inputs))
  const error = useSignal<ApiError | null>(null)
  const isBusy = useSignal(false)
  const isAsked = useSignal(false)
  const runs = useSignal<readonly { readonly id: string; readonly inputs: JsonObject | null }[]>([])
  const use = (used: JsonObject) => {
    texts.value = ofInputs(inputs, used)
  }
  useRunInputs(endpoint.name, {
    onInputs: use,
    onError: (thrown) => {
      error.value = thrown
    },
  })
  const read = inputs.map((input) => ({ input, ...readText(input, texts.value.get(input.name) ?? '') }))
  const wrong = read.filter(({ problem }) => problem !== null)
  const refused = refusedInputs(error.value)

  async function run(): Promise<void> {
    isAsked.value = true
    if (wrong.length > 0) return
    isBusy.value = true
    error.value = null
    const pairs = read.flatMap(({ input, text }) => (text === null ? [] : [`${JSON.stringify(input.name)}:${text}`]))
    try {
      const made = await runEndpoint(endpoint.name, version.version, `{${pairs.join(',')}}`)
      runs.value = [made, ...runs.value]
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown
      error.value = thrown
    } finally {
      isBusy.value = false
    }
  }
  return (
    <div class="run-body">
      <form
        class="run-form"
        onSubmit={(event) => {
          event.preventDefault()
          void run()
        }}
      >
        <div class="card">
          {inputs.length === 0 && <p class="dim">It has no inputs: each run is the same.</p>}
          {read.map(({ input, problem }) => (
            <InputField
              key={input.name}
              input={input}
              File={FileField}
              text={texts.value.get(input.name) ?? ''}
              problem={refused.get(input.name) ?? (isAsked.value ? problem : null)}
              onText={(text) => {
                texts.value = new Map(texts.value).set(input.name, text)
              }}
            />
          ))}
        </div>
        {error.value !== null && refused.size === 0 && <ErrorBox error={error.value} />}
        <Deed isBusy={isBusy.value} wrong={refused.size === 0 && isAsked.value ? wrong.length : refused.size} />
      </form>
      <aside class="run-result card" aria-label="Result">
        <RunResult
          ids={runs.value.map(({ id }) => id)}
          batch={null}
          beneath={(id) => {
            const used = runs.value.find((each) => each.id === id)?.inputs ?? null
            return used === null ? null : <UsedInputs inputs={used} onAgain={() => use(used)} />
          }}
        />
      </aside>
    </div>
  )
}

function Deed({ isBusy, wrong }: { readonly isBusy: boolean; readonly wrong: number }) {
  const mayRun = may('endpoints:run')
  return (
    <>
      <div class="run-bar">
        <div class="run-deeds">
          <button type="submit" class="button primary" disabled={isBusy || !mayRun}>
            <Icon name="play" /> {isBusy ? 'Running…' : 'Run'}
          </button>
          <span role="status" class="failed-text">
            {wrong > 0 && `${plural(wrong, 'input')} to put right`}
          </span>
        </div>
      </div>
      {!mayRun && <NotAllowed scope="endpoints:run" />}
    </>
  )
}

interface RunInputsHandlers {
  readonly onInputs: (inputs: JsonObject) => void
  readonly onError: (error: ApiError) => void
}

/** Those of the run that the address names, to run again. */
function useRunInputs(name: string, { onInputs, onError }: RunInputsHandlers): void {
  const from = query.value.get('from')
  useEffect(() => {
    if (from === null) return
    const controller = new AbortController()
    getRun(name, from, controller.signal).then(
      ({ inputs }) => inputs !== null && onInputs(inputs),
      (thrown: unknown) => {
        if (thrown instanceof ApiError) onError(thrown)
      },
    )
    return () => controller.abort()
  }, [from])
}

/** By the name of the input, in the service's words. */
function refusedInputs(error: ApiError | null): ReadonlyMap<string, string> {
  const list = error?.details?.['inputs']
  if (!Array.isArray(list)) return new Map()
  return new Map(
    (list as readonly { readonly name: string; readonly message: string }[]).map(({ name, message }) => [
      name,
      message,
    ]),
  )
}

interface UsedInputsProps {
  readonly inputs: JsonObject
  readonly onAgain: () => void
}

/** Exactly what a run was made with, the seed that was drawn included. */
function UsedInputs({ inputs, onAgain }: UsedInputsProps) {
  const text = indentJson(stringifyLosslessJson(inputs))
  return (
    <section aria-label="Inputs of this run">
      <pre class="run-inputs" tabIndex={0}>
        {text}
      </pre>
      <div class="row">
        <button type="button" class="button small" onClick={onAgain}>
          Use these inputs again
        </button>
        <CopyButton text={text} label="Copy the inputs" word="Copy" />
      </div>
    </section>
  )
}

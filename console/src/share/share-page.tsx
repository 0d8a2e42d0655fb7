/** The page of a link: the form of the endpoint, what its runs come to, and the runs that were made in this browser. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { Icon } from '../components/icon.tsx'
import { Words } from '../components/text.tsx'
import { beginText, InputField, readText, shown } from '../form/input-field.tsx'
import { toMarkedText } from '../text/marks.ts'
import { FileField } from './file-field.tsx'
import { History } from './history.tsx'
import { RunResult } from './run-result.tsx'
import {
  cancelRun,
  getEndpoint,
  getRun,
  isOver,
  readHistory,
  readUsed,
  type SharedEndpoint,
  type SharedRun,
  ShareError,
  startRun,
  watchRun,
  writeHistory,
} from './share-api.ts'

export function SharePage() {
  const [endpoint, setEndpoint] = useState<SharedEndpoint | null>(null)
  const [error, setError] = useState<ShareError | null>(null)
  const load = () => {
    setError(null)
    getEndpoint().then(setEndpoint, (thrown: unknown) => setError(toShareError(thrown)))
  }
  useEffect(load, [])
  useEffect(() => {
    document.title = toMarkedText(endpoint?.title ?? (error === null ? 'Loading…' : 'This page does not work'))
  }, [endpoint, error])
  if (endpoint !== null) return <OnePage endpoint={endpoint} />
  if (error === null) return <main class="shared" aria-busy="true" />
  return (
    <main class="shared lone">
      <h1>This page does not work</h1>
      <p role="alert">
        <Words text={error.message} />
      </p>
      <button type="button" class="button" onClick={load}>
        Try again
      </button>
    </main>
  )
}

function toShareError(thrown: unknown): ShareError {
  if (thrown instanceof ShareError) return thrown
  throw thrown
}

type Texts = ReadonlyMap<string, string>

function OnePage({ endpoint }: { readonly endpoint: SharedEndpoint }) {
  const { title, description, inputs } = endpoint
  const [texts, setTexts] = useState<Texts>(() => new Map(inputs.map((input) => [input.name, beginText(input)])))
  const runs = useRuns()
  const { current, error, isBusy } = runs

  async function again(run: SharedRun): Promise<void> {
    const used = await Promise.all(inputs.map(async ({ name }) => [name, await readUsed(run.inputs?.[name])] as const))
    setTexts(new Map(used.map(([name, value]) => [name, shown(value)])))
  }
  return (
    <main class="shared">
      <h1>
        <Words text={title} />
      </h1>
      {description !== '' && (
        <p>
          <Words text={description} isBlock />
        </p>
      )}
      <div class="run-body">
        <Form inputs={inputs} texts={texts} onTexts={setTexts} runs={runs} />
        <section class="card" aria-label="Result">
          {current === null && (
            <p class="dim">{isBusy ? 'It begins…' : 'What it makes is shown here, while it is made.'}</p>
          )}
          {error !== null && error.inputs.size === 0 && (
            <p class="failed-text" role="alert">
              <Words text={error.message} />
            </p>
          )}
          {current !== null && (
            <RunResult
              key={current.run}
              run={current}
              preview={runs.preview}
              onStop={() => void runs.stop(current)}
              onAgain={() => void again(current)}
            />
          )}
        </section>
      </div>
      {runs.history.length > 0 && (
        <History
          runs={runs.history}
          current={current}
          onChoose={(run) => void runs.choose(run)}
          onForget={runs.forget}
        />
      )}
    </main>
  )
}

interface FormProps {
  readonly inputs: SharedEndpoint['inputs']
  readonly texts: Texts
  readonly onTexts: (texts: Texts) => void
  readonly runs: Runs
}

function Form({ inputs, texts, onTexts, runs }: FormProps) {
  const [isAsked, setAsked] = useState(false)
  const { error, isBusy, start } = runs
  const read = inputs.map((input) => ({ input, ...readText(input, texts.get(input.name) ?? '') }))
  const wrong = read.filter(({ problem }) => problem !== null)
  const refused = error?.inputs ?? new Map<string, string>()
  const isRunning = runs.current !== null && !isOver(runs.current)
  const count = refused.size > 0 ? refused.size : isAsked ? wrong.length : 0

  function run(event: Event): void {
    event.preventDefault()
    setAsked(true)
    if (wrong.length > 0 || isBusy || isRunning) return
    const pairs = read.flatMap(({ input, text }) => (text === null ? [] : [`${JSON.stringify(input.name)}:${text}`]))
    void start(`{${pairs.join(',')}}`)
  }
  return (
    <form class="run-form" onSubmit={run}>
      <div class="card">
        {inputs.length === 0 && <p class="dim">There is nothing to fill in.</p>}
        {read.map(({ input, problem }) => (
          <InputField
            key={input.name}
            input={input}
            File={FileField}
            text={texts.get(input.name) ?? ''}
            problem={refused.get(input.name) ?? (isAsked ? problem : null)}
            onText={(text) => onTexts(new Map(texts).set(input.name, text))}
          />
        ))}
      </div>
      <div class="share-bar">
        <button type="submit" class="button primary" disabled={isBusy || isRunning}>
          <Icon name="play" /> {isBusy || isRunning ? 'Running…' : 'Run'}
        </button>
        <span role="status" class="failed-text">
          {count > 0 && `${count} ${count === 1 ? 'input' : 'inputs'} to put right`}
        </span>
      </div>
    </form>
  )
}

type Runs = ReturnType<typeof useRuns>

/** The run that is shown, and those before it. */
function useRuns() {
  const [history, setHistory] = useState(readHistory)
  const [current, setCurrent] = useState<SharedRun | null>(null)
  const [preview, setPreview] = useState<string | null>(null)
  const [error, setError] = useState<ShareError | null>(null)
  const [isBusy, setBusy] = useState(false)
  const shownRun = current?.run ?? null
  const isLive = current !== null && !isOver(current)
  // One key for each call, and the same as long as its answer is not known.
  const key = useRef<{ readonly of: string; readonly text: string } | null>(null)
  useEffect(() => {
    if (shownRun === null || !isLive) return
    setPreview(null)
    return watchRun(shownRun, { onRun: setCurrent, onPreview: setPreview, onError: setError })
  }, [shownRun, isLive])

  async function attempt(work: () => Promise<void>): Promise<void> {
    setError(null)
    setBusy(true)
    try {
      await work()
    } catch (thrown) {
      setError(toShareError(thrown))
    } finally {
      setBusy(false)
    }
  }
  const keep = (runs: readonly string[]) => {
    setHistory(runs)
    writeHistory(runs)
  }
  return {
    ...{ history, current, preview, error, isBusy },
    start: (inputs: string) =>
      attempt(async () => {
        if (key.current?.of !== inputs) key.current = { of: inputs, text: newKey() }
        const made = await startRun(inputs, key.current.text).catch((thrown: unknown) => {
          // Answered, so the next call is another one.
          if (thrown instanceof ShareError && thrown.status !== 0) key.current = null
          throw thrown
        })
        key.current = null
        setCurrent(made)
        keep([made.run, ...history.filter((run) => run !== made.run)])
      }),
    stop: (run: SharedRun) =>
      attempt(async () => {
        setCurrent(await cancelRun(run.run))
      }),
    choose: (run: string) =>
      attempt(async () => {
        setCurrent(
          await getRun(run).catch((thrown: unknown) => {
            // What is kept of a run ends after a while.
            if (thrown instanceof ShareError && thrown.status === 404) keep(history.filter((other) => other !== run))
            throw thrown
          }),
        )
      }),
    forget: () => {
      keep([])
      if (!isLive) setCurrent(null)
    },
  }
}

/** Also where randomUUID is not there: a page without https. */
function newKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

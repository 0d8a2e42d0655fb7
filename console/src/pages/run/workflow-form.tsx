/** The form itself: what matters first, the rest folded, the whole as JSON; beside it what it makes. */
import { effect, signal, useSignal } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import { indentJson } from '../../../../lib/json/indent-json.ts'
import { ApiError } from '../../api/client.ts'
import { listForms, rerun, saveForm } from '../../api/jobs.ts'
import { confirm } from '../../components/overlay/dialog.tsx'
import { ErrorBox } from '../../components/state.tsx'
import { showToast, Words } from '../../components/text.tsx'
import { type BatchWay, jobsPrice, toBatch } from '../../form/batch.ts'
import { type ClientLines, CopyAs, curlLines, needsKey, RunBar, serviceAddress } from '../../form/run-bar.tsx'
import { changeWorkflow, type FieldGroup, type InputChange } from '../../form/workflow-fields.ts'
import { lazy } from '../../lazy.tsx'
import { hash, hrefOf, navigate, setHash } from '../../routes.ts'
import { submitWorkflow } from '../../state/deeds.ts'
import { takeSnapshot } from '../../state/live/live.ts'
import { session } from '../../state/session.ts'
import { plural } from '../../text/format.ts'
import { toMarkedText } from '../../text/marks.ts'
import { type Draft, isEmptyDraft, packDraft, readRunHash, writeRunHash } from './draft.ts'
import { FieldInput, fieldId } from './field-input.tsx'
import { RunResult } from './run-result.tsx'
import {
  changedText,
  draft,
  groups,
  jobCount,
  markRefused,
  open,
  type RunSource,
  reading,
  source,
  way,
} from './run-state.ts'

const JsonPane = lazy(() => import('../../form/json-pane.tsx').then((module) => module.JsonPane))

export function WorkflowForm() {
  return source.value === null ? null : <Form current={source.value} />
}

function Form({ current }: { readonly current: RunSource }) {
  const [{ state, submit, resume }] = useState(createBatch)
  const batchName = useSignal<string | null>(null)
  const { changes, lists, problems } = reading.value
  const { value: count } = jobCount
  const isJson = readRunHash(hash.value).isJson
  useDraftInAddress()
  const isReady = problems.size === 0 && typeof count === 'number'

  /** As the form is now: what is changed while a long list is submitted is for the next run. */
  function run(): void {
    const jobs = toBatch(lists, way.value)
    const name = jobs.length > 1 ? crypto.randomUUID().slice(0, 8) : null
    const batch: Readonly<Record<string, string>> = name === null ? {} : { batch: name }
    const workflowText = changedText()
    batchName.value = name
    void submit(jobs, async (own) => {
      if (current.from === null) {
        const metadata = { ...(current.name !== '' && { form: current.name.slice(0, 60) }), ...batch }
        return (await submitWorkflow(changeWorkflow(workflowText, own), metadata)).id
      }
      // In the service, so that what the job had pinned stays pinned.
      const metadata = name === null ? undefined : { ...current.metadata, ...batch }
      const job = await rerun(current.from, [...changes, ...own], metadata)
      takeSnapshot([job])
      return job.id
    })
  }

  const { error, left, isBusy, ids, total } = state.value
  return (
    <div class="run-body">
      <form class="run-form" onSubmit={(event) => event.preventDefault()}>
        <Notes current={current} />
        {isJson ? <WholeText current={current} /> : <Groups />}
        {lists.filter(({ valueTexts }) => valueTexts.length > 1).length > 1 && <WayChoice />}
        {error !== null && <ErrorBox error={error} />}
        {error !== null && total > 1 && (
          <p class="row" role="status">
            {total - left.length} of {plural(total, 'job')} were submitted.
            <button type="button" class="button" onClick={() => void resume()}>
              Submit the other {left.length}
            </button>
          </p>
        )}
        <RunBar
          word={typeof count === 'number' && count > 1 ? `Run ${count} jobs` : 'Run'}
          isReady={isReady}
          isBusy={isBusy}
          onRun={run}
          isJson={isJson}
          onJson={showJson}
          price={standing({ isBusy, total, left: left.length, problems: problems.size, count })}
        >
          <SaveForm name={current.name} />
          <button
            type="button"
            class="button"
            onClick={() => {
              source.value = null
              navigate('/run')
            }}
          >
            Another workflow
          </button>
        </RunBar>
      </form>
      <aside class="run-result card" aria-label="Result">
        <RunResult ids={ids} batch={batchName.value} />
        <section class="copy-lines" aria-labelledby="copy-lines">
          <h2 id="copy-lines">From a program</h2>
          <CopyAs
            words={['curl', 'SDK', 'command line']}
            lines={() => workflowLines(changedText(toBatch(lists, way.value)[0] ?? []))}
          />
        </section>
      </aside>
    </div>
  )
}

function showJson(isJson: boolean): void {
  setHash(writeRunHash({ ...readRunHash(hash.peek()), isJson }))
}

const DRAFT_MS = 300

/** Keeps the address as the form is, a moment after the last key. */
function useDraftInAddress(): void {
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    let isOver = false
    async function write(found: Draft): Promise<void> {
      const text = isEmptyDraft(found) ? null : await packDraft(found)
      if (!isOver && draft.peek() === found) setHash(writeRunHash({ ...readRunHash(hash.peek()), draft: text }))
    }
    const stop = effect(() => {
      const found = draft.value
      clearTimeout(timer)
      if (found !== null) timer = setTimeout(() => void write(found), DRAFT_MS)
    })
    return () => {
      isOver = true
      stop()
      clearTimeout(timer)
    }
  }, [])
}

/** The first input that the refusal names is shown, wherever it is folded, and has the focus. */
function lookAt(key: string): void {
  const field = document.getElementById(fieldId(key))
  const folded = field?.closest('details')
  if (folded !== null && folded !== undefined) folded.open = true
  field?.focus()
}

function Notes({ current: { from, notes } }: { readonly current: RunSource }) {
  return (
    <>
      {from !== null && (
        <p class="dim">
          As <a href={hrefOf(`/jobs/${from}`)}>this job</a>, with what you change here.
        </p>
      )}
      {notes.map((note) => (
        <p key={note} class="warning">
          <Words text={note} />
        </p>
      ))}
    </>
  )
}

function WholeText({ current }: { readonly current: RunSource }) {
  return (
    <JsonPane
      label="Workflow as JSON"
      text={changedText()}
      onText={(text: string) => {
        open({ ...current, workflowText: text, from: null, isKept: false })
        showJson(false)
      }}
    />
  )
}

interface Standing {
  readonly isBusy: boolean
  readonly total: number
  readonly left: number
  readonly problems: number
  readonly count: ReturnType<typeof jobCount.peek>
}

/** One line beside the button: how far it is, what is missing, or what the jobs may cost. */
function standing({ isBusy, total, left, problems, count }: Standing): string {
  if (isBusy && total > 1) return `${total - left} of ${total} submitted`
  if (problems > 0) return `${plural(problems, 'input')} to mend`
  if (typeof count !== 'number') return count.problem
  return jobsPrice(session.value?.account?.job_price ?? null, count)
}

function Groups() {
  const first = groups.value.filter(({ isFirst }) => isFirst)
  const rest = groups.value.filter(({ isFirst }) => !isFirst)
  const restCount = rest.reduce((sum, { fields }) => sum + fields.length, 0)
  return (
    <>
      {first.map((group) => (
        <Group key={group.node} group={group} />
      ))}
      {rest.length > 0 && (
        <details class="run-rest">
          <summary>{plural(restCount, 'more input')}</summary>
          {rest.map((group) => (
            <Group key={group.node} group={group} />
          ))}
        </details>
      )}
      {groups.value.length === 0 && <p class="dim">This workflow has no inputs to fill in.</p>}
    </>
  )
}

function Group({ group }: { readonly group: FieldGroup }) {
  return (
    <fieldset class="field-group">
      <legend>
        <Words text={group.title} /> <span class="dim">{group.node}</span>
      </legend>
      {group.fields.map((field) => (
        <FieldInput key={field.input} field={field} />
      ))}
    </fieldset>
  )
}

const WAYS: Readonly<Record<BatchWay, string>> = {
  combinations: 'every combination',
  'side by side': 'side by side: first with first, second with second',
}

/** Several inputs have several values: which go together. */
function WayChoice() {
  return (
    <fieldset class="choice">
      <legend>Lists go together as</legend>
      {(Object.entries(WAYS) as [BatchWay, string][]).map(([name, words]) => (
        <label key={name}>
          <input
            type="radio"
            name="way"
            checked={way.value === name}
            onChange={() => {
              way.value = name
            }}
          />
          {words}
        </label>
      ))}
    </fieldset>
  )
}

function workflowLines(workflowText: string): ClientLines {
  const settings = `ATELIER_BASE_URL=${serviceAddress()}`
  const file = ["cat > workflow.json <<'JSON'", indentJson(workflowText), 'JSON'].join('\n')
  return {
    curl: curlLines('/api/v2/jobs', `{"workflow":${workflowText}}`),
    SDK: [
      "import { Comfy } from '@comfyorg/sdk'",
      `process.env.COMFY_BASE_URL = '${serviceAddress()}'`,
      ...(needsKey() ? ['// COMFY_API_KEY in the environment'] : []),
      '// workflow.json: this form’s workflow, from the command line’s lines or the JSON view',
      "const job = await new Comfy().run(await new Comfy().workflows.fromFile('workflow.json'))",
    ].join('\n'),
    'command line': `${file}\n${settings} npx atelier run workflow.json --out results`,
  }
}

interface BatchState {
  readonly total: number
  /** Newest first. */
  readonly ids: readonly string[]
  /** Refused and not made yet. */
  readonly left: readonly (readonly InputChange[])[]
  readonly error: ApiError | null
  readonly isBusy: boolean
}

const IDLE: BatchState = { total: 0, ids: [], left: [], error: null, isBusy: false }

type Submit = (changes: readonly InputChange[]) => Promise<string>

/** Submits the jobs of a form one after the other, so that they wait in the order of their lists. What is refused stops it. */
function createBatch() {
  const state = signal<BatchState>(IDLE)
  let last: Submit | null = null
  async function submit(jobs: readonly (readonly InputChange[])[], one: Submit): Promise<void> {
    if (state.value.isBusy) return
    last = one
    markRefused(null)
    state.value = { ...state.value, total: jobs.length, left: jobs, error: null, isBusy: true }
    for (const [index, changes] of jobs.entries()) {
      try {
        const id = await one(changes)
        state.value = { ...state.value, ids: [id, ...state.value.ids], left: jobs.slice(index + 1) }
      } catch (error) {
        state.value = { ...state.value, isBusy: false, error: error instanceof ApiError ? error : null }
        if (!(error instanceof ApiError)) throw error
        const first = markRefused(error)
        if (first !== null) lookAt(first)
        return
      }
    }
    state.value = { ...state.value, isBusy: false }
  }
  return {
    state,
    submit,
    /** Those that are left, as they were when the others were submitted. */
    resume: () => (last === null ? undefined : submit(state.value.left, last)),
  }
}

/** Keeps the form, as it is filled in, under a name: it can then be opened by its address. */
function SaveForm({ name: known }: { readonly name: string }) {
  const field = useRef<HTMLInputElement>(null)
  const mine = useSignal(known)
  async function save(): Promise<void> {
    const name = field.current?.value.trim() ?? ''
    if (name === '') return field.current?.focus()
    try {
      const isOther = name !== mine.value && (await listForms()).forms.some((form) => form.name === name)
      if (isOther && !(await mayReplace(name))) return
      await saveForm(name, { workflow_text: changedText() })
      mine.value = name
      showToast(`Saved as ${name}.`)
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown
      showToast(thrown.message)
    }
  }
  return (
    <div class="save-form">
      <input
        ref={field}
        type="text"
        class="save-name"
        placeholder="name"
        aria-label="Name to save as"
        maxLength={80}
        defaultValue={known}
        onKeyDown={(event) => {
          if (event.key === 'Enter') void save()
        }}
      />
      <button type="button" class="button" onClick={() => void save()}>
        Save
      </button>
    </div>
  )
}

function mayReplace(name: string): Promise<boolean> {
  return confirm({
    title: `Replace “${toMarkedText(name)}”?`,
    text: 'There is a saved form of this name. What it holds is lost.',
    deed: 'Replace',
    isDangerous: true,
  })
}

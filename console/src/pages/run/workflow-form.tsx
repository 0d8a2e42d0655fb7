/** The form itself: what matters first, the rest folded, the whole as JSON; beside it what it makes. */
import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import { ApiError } from '../../api/client.ts'
import { saveForm } from '../../api/forms.ts'
import { rerun } from '../../api/jobs.ts'
import { ErrorBox } from '../../components/error-box.tsx'
import { Icon } from '../../components/icon.tsx'
import { showToast } from '../../components/overlay/toast.tsx'
import { Words } from '../../components/words.tsx'
import type { FieldGroup } from '../../form/workflow-fields.ts'
import { useKeys } from '../../keys/keys.ts'
import { lazy } from '../../lazy.tsx'
import { hrefOf, navigate } from '../../routes.ts'
import { submitWorkflow } from '../../state/deeds.ts'
import { takeSnapshot } from '../../state/live/live.ts'
import { plural } from '../../text/format.ts'
import { FieldInput } from './field-input.tsx'
import { RunResult } from './run-result.tsx'
import { changedText, groups, open, type RunSource, reading, source } from './run-state.ts'

const JsonPane = lazy(() => import('./json-pane.tsx').then((module) => module.JsonPane))

export function WorkflowForm() {
  return source.value === null ? null : <Form current={source.value} />
}

function Form({ current }: { readonly current: RunSource }) {
  const isJson = useSignal(false)
  const isBusy = useSignal(false)
  const error = useSignal<ApiError | null>(null)
  const made = useSignal<readonly string[]>([])
  const saveName = useRef<HTMLInputElement>(null)
  const first = groups.value.filter(({ isFirst }) => isFirst)
  const rest = groups.value.filter(({ isFirst }) => !isFirst)
  const restCount = rest.reduce((sum, { fields }) => sum + fields.length, 0)
  const { changes, problems } = reading.value

  async function run(): Promise<void> {
    if (isBusy.value || problems.size > 0) return
    isBusy.value = true
    error.value = null
    try {
      const id = current.from === null ? await submitNew() : await runAgain(current.from)
      made.value = [id, ...made.value]
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown
      error.value = thrown
    } finally {
      isBusy.value = false
    }
  }
  async function submitNew(): Promise<string> {
    return (await submitWorkflow(changedText(), current.name !== '' ? { form: current.name.slice(0, 60) } : {})).id
  }
  /** In the service, so that what the job had pinned stays pinned. */
  async function runAgain(from: string): Promise<string> {
    const job = await rerun(from, changes)
    takeSnapshot([job])
    return job.id
  }
  async function save(): Promise<void> {
    const name = saveName.current?.value.trim() ?? ''
    if (name === '') return saveName.current?.focus()
    try {
      await saveForm(name, { workflow_text: changedText() })
      showToast(`Saved as ${name}.`)
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown
      error.value = thrown
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
        {current.from !== null && (
          <p class="dim">
            As <a href={hrefOf(`/jobs/${current.from}`)}>this job</a>, with what you change here.
          </p>
        )}
        {current.notes.map((note) => (
          <p key={note} class="warning">
            <Words text={note} />
          </p>
        ))}
        {isJson.value ? (
          <JsonPane
            text={changedText()}
            onText={(text: string) => open({ ...current, workflowText: text, from: null })}
          />
        ) : (
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
        )}
        {error.value !== null && <ErrorBox error={error.value} />}
        <div class="run-deeds">
          <button type="submit" class="button primary" disabled={isBusy.value || problems.size > 0}>
            <Icon name="play" /> Run <kbd aria-hidden="true">⌘↵</kbd>
          </button>
          <button
            type="button"
            class="button"
            onClick={() => {
              isJson.value = !isJson.value
            }}
          >
            {isJson.value ? 'Form' : 'JSON'}
          </button>
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
          <span class="top-line-space" />
          <input
            ref={saveName}
            type="text"
            class="save-name"
            placeholder="name"
            aria-label="Name to save as"
            defaultValue={current.name}
          />
          <button type="button" class="button" onClick={() => void save()}>
            Save
          </button>
        </div>
      </form>
      <RunResult ids={made.value} />
    </div>
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

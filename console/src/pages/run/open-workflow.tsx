/** Where a workflow comes from: a file, pasted text, or one that was saved. */
import { useState } from 'preact/hooks'
import { ApiError } from '../../api/client.ts'
import { listForms, removeForm } from '../../api/jobs.ts'
import { FileDrop } from '../../components/files/file-buttons.tsx'
import { Icon } from '../../components/icon.tsx'
import { confirm } from '../../components/overlay/dialog.tsx'
import { ErrorBox } from '../../components/state.tsx'
import { Words } from '../../components/text.tsx'
import { hrefOf } from '../../routes.ts'
import { useResource } from '../../state/resource.ts'
import { toMarkedText } from '../../text/marks.ts'
import { EXAMPLE_WORKFLOW } from '../home/example.ts'
import { open, openFile } from './run-state.ts'

export function OpenWorkflow() {
  const [problem, setProblem] = useState<ApiError | null>(null)
  const [pasted, setPasted] = useState('')
  async function take(file: Blob, name: string): Promise<void> {
    try {
      await openFile(file, name)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      setProblem(error)
    }
  }
  return (
    <div class="open-workflow">
      <FileDrop
        label="Open a workflow"
        hint="or drop it here: JSON of the editor or of the API, or a picture, video or sound that ComfyUI saved"
        accept=".json,image/png,image/webp,audio/flac,video/mp4,application/json"
        onFiles={([file]) => void take(file, file.name.replace(/\.\w+$/, ''))}
      />
      {problem !== null && <ErrorBox error={problem} />}
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault()
          if (pasted.trim() !== '') void take(new Blob([pasted], { type: 'application/json' }), '')
        }}
      >
        <label for="paste">Or paste one</label>
        <textarea
          id="paste"
          rows={6}
          class="mono"
          spellcheck={false}
          value={pasted}
          onInput={(event) => setPasted(event.currentTarget.value)}
        />
        <div class="row">
          <button type="submit" class="button" disabled={pasted.trim() === ''}>
            Make a form of it
          </button>
          <button
            type="button"
            class="button"
            onClick={() => open({ workflowText: EXAMPLE_WORKFLOW, name: 'colour card' })}
          >
            Open the example
          </button>
        </div>
      </form>
      <SavedForms onProblem={setProblem} />
    </div>
  )
}

function SavedForms({ onProblem }: { readonly onProblem: (problem: ApiError) => void }) {
  const resource = useResource('forms', listForms)
  const forms = resource.data.value?.forms ?? []
  async function remove(name: string): Promise<void> {
    const isMeant = await confirm({
      title: `Remove “${toMarkedText(name)}”?`,
      text: 'The saved workflow is removed. Jobs that it ran stay.',
      deed: 'Remove',
      isDangerous: true,
    })
    if (!isMeant) return
    try {
      await removeForm(name)
      resource.reload()
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      onProblem(error)
    }
  }
  if (forms.length === 0) return null
  return (
    <section aria-labelledby="saved-forms">
      <h2 id="saved-forms">Saved</h2>
      <ul class="plain-list">
        {forms.map(({ name }) => (
          <li key={name}>
            <a href={hrefOf(`/run/${encodeURIComponent(name)}`)}>
              <Words text={name} />
            </a>
            <button
              type="button"
              class="icon-button"
              aria-label={`Remove ${toMarkedText(name)}`}
              onClick={() => void remove(name)}
            >
              <Icon name="cross" />
            </button>
          </li>
        ))}
      </ul>
    </section>
  )
}

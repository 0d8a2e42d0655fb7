/** A form over any workflow: from a file, from a job to run again, or from one that was saved. */
import { useEffect, useState } from 'preact/hooks'
import { ApiError } from '../../api/client.ts'
import { getNodeClasses } from '../../api/jobs.ts'
import { ErrorBox, Skeleton } from '../../components/state.tsx'
import { showToast } from '../../components/text.tsx'
import { hash, navigate, query } from '../../routes.ts'
import { readRunHash, unpackDraft } from './draft.ts'
import { OpenWorkflow } from './open-workflow.tsx'
import { classes, openDraft, openFile, openForm, openJob, source } from './run-state.ts'
import { WorkflowForm } from './workflow-form.tsx'

type Problem = ApiError | null

interface RunPlace {
  readonly from: string | null
  readonly saved: string
}

/** What the address names, with the draft that it holds over that. */
async function openPlace({ from, saved }: RunPlace, signal: AbortSignal): Promise<void> {
  const text = readRunHash(hash.peek()).draft
  const draft = text === null ? null : await unpackDraft(text)
  if (signal.aborted) return
  if (draft?.workflowText == null) {
    if (from !== null) await openJob(from, signal)
    else if (saved !== '') await openForm(saved, signal)
    // A workflow that was dropped here is kept while one looks elsewhere; one that an address named is not this address's.
    else if (source.peek()?.isKept === true) source.value = null
  }
  if (draft !== null && !signal.aborted) openDraft(draft)
}

export function RunPage({ saved = '' }: Readonly<Record<string, string>>) {
  const from = query.value.get('from')
  const [problem, setProblem] = useState<Problem>(null)
  const wanted = `${from} ${saved}`
  const [opened, setOpened] = useState<string | null>(null)
  // The form of the address before is not shown meanwhile: what is typed into it would be lost.
  const isBusy = wanted !== opened
  useEffect(() => {
    const controller = new AbortController()
    setProblem(null)
    openPlace({ from, saved }, controller.signal)
      .catch((error: unknown) => {
        if (error instanceof ApiError) setProblem(error)
      })
      .finally(() => !controller.signal.aborted && setOpened(wanted))
    return () => controller.abort()
  }, [from, saved])
  useEffect(() => {
    const controller = new AbortController()
    // Without the classes the form is drawn from the values alone.
    if (classes.peek() === null)
      getNodeClasses(controller.signal).then(
        (found) => {
          classes.value = found
        },
        () => undefined,
      )
    return () => controller.abort()
  }, [])
  async function drop(file: File | undefined): Promise<void> {
    if (file === undefined) return
    try {
      await openFile(file, file.name.replace(/\.\w+$/, ''))
      navigate('/run')
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      showToast(error.message)
    }
  }
  return (
    <section
      class="page run"
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        // A field that takes files has taken it; anywhere else it is a workflow to open.
        if (event.defaultPrevented) return
        event.preventDefault()
        void drop(event.dataTransfer?.files[0])
      }}
    >
      <h1>{from === null ? 'Run' : 'Run again'}</h1>
      {problem !== null && <ErrorBox error={problem} />}
      {isBusy && problem === null && <Skeleton rows={6} />}
      {!isBusy && problem === null && (source.value === null ? <OpenWorkflow /> : <WorkflowForm />)}
    </section>
  )
}

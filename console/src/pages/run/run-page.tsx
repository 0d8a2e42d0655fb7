/** A form over any workflow: from a file, from a job to run again, or from one that was saved. */
import { useEffect, useState } from 'preact/hooks'
import { ApiError } from '../../api/client.ts'
import { getNodeClasses } from '../../api/jobs.ts'
import { ErrorBox, Skeleton } from '../../components/state.tsx'
import { showToast } from '../../components/text.tsx'
import { navigate, query } from '../../routes.ts'
import { OpenWorkflow } from './open-workflow.tsx'
import { classes, openFile, openForm, openJob, source } from './run-state.ts'
import { WorkflowForm } from './workflow-form.tsx'

type Problem = ApiError | null

export function RunPage({ saved = '' }: Readonly<Record<string, string>>) {
  const from = query.value.get('from')
  const [problem, setProblem] = useState<Problem>(null)
  const wanted = from !== null || saved !== '' ? `${from} ${saved}` : null
  const [opened, setOpened] = useState<string | null>(null)
  // The form of the address before is not shown meanwhile: what is typed into it would be lost.
  const isBusy = wanted !== opened
  useEffect(() => {
    const controller = new AbortController()
    setProblem(null)
    const opening =
      from !== null ? openJob(from, controller.signal) : saved !== '' ? openForm(saved, controller.signal) : null
    if (opening === null) {
      setOpened(null)
      if (source.peek()?.from != null) source.value = null
    } else
      opening
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

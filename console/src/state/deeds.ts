/** What a person can do to jobs, with the words that they are asked and told. */
import { ApiError, send } from '../api/client.ts'
import { type JobFilter, toQuery } from '../api/filter.ts'
import { cancelByFilter, cancelJob, moveJob, rerun, resumeQueue } from '../api/jobs.ts'
import { confirm } from '../components/overlay/dialog.tsx'
import { showToast } from '../components/text.tsx'
import { plural } from '../text/format.ts'
import { serverNow } from './clock.ts'
import { jobOf, showStatus, takeSnapshot } from './live/live.ts'

/** Refusals of a deed are said; anything else is a defect and stays one. */
export async function tell<Value>(deed: () => Promise<Value>): Promise<Value | null> {
  try {
    return await deed()
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const wait = error.retryAfterSeconds === null ? '' : ` Again in ${error.retryAfterSeconds} s.`
    showToast(`${error.message}.${wait}`.replace('..', '.'))
    return null
  }
}

/** Shown as canceling at once, and taken back when the service refuses. */
export async function cancelOne(id: string): Promise<void> {
  const job = jobOf(id)
  const undo = job?.status === 'running' ? showStatus(id, 'canceling') : () => undefined
  const done = await tell(() => cancelJob(id))
  if (done === null) undo()
}

export async function moveOne(id: string, change: Parameters<typeof moveJob>[1], done: string): Promise<void> {
  if ((await tell(() => moveJob(id, change))) !== null) showToast(done)
}

export async function resumeOwnQueue(): Promise<void> {
  if ((await tell(resumeQueue)) !== null) showToast('Jobs of this account are taken again.')
}

/** All that wait and fit the filter; what runs goes on. The number is the service's own. */
export async function cancelWaiting(filter: JobFilter): Promise<void> {
  const body = filterBody(filter)
  const would = await tell(() => cancelByFilter(body, { onlyWaiting: true, dryRun: true }))
  if (would === null) return
  if (would.count === 0) return showToast('Nothing waits.')
  const isMeant = await confirm({
    title: `Cancel ${howMany(would)}?`,
    text: 'They leave the queue and are not run. What runs now goes on.',
    deed: `Cancel ${howMany(would)}`,
    isDangerous: true,
  })
  if (!isMeant) return
  const done = await tell(() => cancelAllWaiting(body))
  if (done === null) return
  showToast(`${plural(done.count, 'waiting job')} canceled.${done.has_more ? ' More wait; cancel again.' : ''}`)
}

type Canceled = Awaited<ReturnType<typeof cancelByFilter>>

function howMany({ count, has_more: hasMore }: Canceled): string {
  return `${hasMore ? 'at least ' : ''}${plural(count, 'waiting job')}`
}

// One request cancels a bounded number. Where new ones come as fast as others go, it ends here.
const MAX_REQUESTS = 20

async function cancelAllWaiting(body: Readonly<Record<string, string>>): Promise<Canceled> {
  let count = 0
  for (let request = 0; request < MAX_REQUESTS; request += 1) {
    const done = await cancelByFilter(body, { onlyWaiting: true, dryRun: false })
    count += done.count
    if (!done.has_more) return { count, has_more: false }
  }
  return { count, has_more: true }
}

/** The same names as in the question for the list. */
function filterBody(filter: JobFilter): Readonly<Record<string, string>> {
  const body = Object.fromEntries(toQuery(filter, serverNow()))
  delete body['sort']
  return body
}

/** The same again, unchanged: gives the new job's id. */
export async function rerunOne(id: string): Promise<string | null> {
  const job = await tell(() => rerun(id, []))
  if (job === null) return null
  takeSnapshot([job])
  return job.id
}

/** A workflow as text, so that its numbers stay as they are. */
export async function submitWorkflow(workflowText: string, metadata: Readonly<Record<string, string>> = {}) {
  const body = `{"workflow":${workflowText},"metadata":${JSON.stringify(metadata)}}`
  return await send<{ readonly id: string }>('POST', '/api/v2/jobs', body)
}

/** What a job is called in a list, and what there is to say about it in a few words. */
import type { Summary } from '../../api/summary.ts'
import { plural } from '../../text/format.ts'
import { shortId } from '../id.tsx'
import { Words } from '../words.tsx'

export function jobName({ title, id }: Pick<Summary, 'title' | 'id'>): string {
  return title === '' ? shortId(id) : title
}

/** Where it is, what went wrong, or what it made. */
export function jobTrail(job: Summary): string {
  if (job.status === 'queued')
    return job.queue_position === null ? 'waits' : `${ordinal(job.queue_position)} in the queue`
  if (job.status === 'running' || job.status === 'canceling') {
    if (job.node === null) return 'starts'
    const steps = job.steps === null || job.steps <= 1 ? '' : ` ${job.step ?? 0}/${job.steps}`
    return `${job.node.class_type ?? `node ${job.node.id}`}${steps}`
  }
  if (job.status === 'failed') return job.error === null ? 'failed' : job.error.code
  if (job.status === 'succeeded') return job.outputs === 0 ? 'no outputs' : plural(job.outputs, 'output')
  return job.status
}

export function ordinal(place: number): string {
  const rest = place % 100
  const ending = rest > 10 && rest < 14 ? 'th' : ({ 1: 'st', 2: 'nd', 3: 'rd' }[place % 10] ?? 'th')
  return `${place}${ending}`
}

export function MetaChips({ metadata }: { readonly metadata: Readonly<Record<string, string>> }) {
  const pairs = Object.entries(metadata)
  if (pairs.length === 0) return null
  return (
    <span class="chips">
      {pairs.map(([key, value]) => (
        <span key={key} class="chip quiet">
          <Words text={`${key}=${value}`} />
        </span>
      ))}
    </span>
  )
}

/** What is shown of a job wherever one is named: its name, how far it is, the files that went in. */
import { useRef } from 'preact/hooks'
import type { JobDetail } from '../../api/job-detail.ts'
import type { Summary } from '../../api/summary.ts'
import { formatBytes, plural } from '../../text/format.ts'
import { shortId, Words } from '../text.tsx'

/** What a job is called in a list, and what there is to say about it in a few words. */
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

interface ProgressProps {
  readonly value: number | null
  readonly label: string
  readonly run: string
}

/** How far a run is, as the service says it. Never goes back while the same run is shown. */
export function Progress({ value, label, run }: ProgressProps) {
  const most = useRef({ run, value: 0 })
  if (most.current.run !== run) most.current = { run, value: 0 }
  const shown = Math.max(most.current.value, Math.min(1, value ?? 0))
  most.current.value = shown
  const percent = Math.floor(shown * 100)
  return (
    <div
      class="progress"
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={value === null ? undefined : percent}
    >
      <div class="progress-bar" style={{ transform: `scaleX(${shown})` }} />
    </div>
  )
}

interface InputFilesProps {
  readonly job: Pick<JobDetail, 'inputs' | 'are_inputs_cut'>
  /** Their bytes are the account's own. */
  readonly isOwn: boolean
}

/** The files that the graph of a job names. */
export function InputFiles({ job: { inputs, are_inputs_cut: areCut }, isOwn }: InputFilesProps) {
  return (
    <>
      {inputs.length === 0 && <p class="dim">no files</p>}
      <ul class="plain-list">
        {inputs.map((input) => (
          <li key={input.name}>
            {input.url === null || !isOwn ? (
              <Words text={input.name} />
            ) : (
              <a href={`${input.url}?download=1`} download>
                <Words text={input.name} />
              </a>
            )}
            <span class="dim">
              {[input.content_type, input.size_bytes === null ? null : formatBytes(input.size_bytes)]
                .filter((part) => part !== null)
                .join(' · ')}
            </span>
          </li>
        ))}
      </ul>
      {areCut && <p class="dim">… and more</p>}
    </>
  )
}

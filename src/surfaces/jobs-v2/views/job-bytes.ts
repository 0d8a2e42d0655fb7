/**
 * A job's answer as bytes, kept from the second time on that a snapshot is asked for: most are asked for once. Jobs are immutable,
 * so the bytes live exactly as long as the snapshot does; the last caller's base is remembered with them, because links depend on
 * it and callers hardly ever differ. Signed addresses expire: bytes that contain some are rebuilt in time. A job may have thousands
 * of outputs, each with an address to be signed, so encoding is done in steps, and the bytes are kept at once.
 */

import type { Clock } from '../../../../lib/clock.ts'
import { finishNow, type Work } from '../../../../lib/waiting/turns.ts'
import type { Job } from '../../../domain/jobs/job.ts'
import { toJobView, toOutputText, type ViewBase } from './job-view.ts'
import type { ContentLinks, JobLinkStyle, LinkBase } from './links.ts'

export interface JobBytes {
  (job: Job, base: LinkBase): Buffer
  inSteps(job: Job, base: LinkBase): Work<Buffer>
  /** Made already, or made at once. */
  isQuick(job: Job, base: LinkBase): boolean
}

interface Encoded extends LinkBase {
  readonly bytes: Buffer
  readonly untilMs: number
}

interface JobBytesOptions {
  readonly contentLinks: ContentLinks
  readonly linkStyle: JobLinkStyle
  readonly clock: Clock
}

const STEP_OUTPUTS = 100
const NO_OUTPUTS = '"outputs":[]'

export function createJobBytes({ contentLinks, linkStyle, clock }: JobBytesOptions): JobBytes {
  const encoded = new WeakMap<Job, Encoded>()
  const askedFor = new WeakSet<Job>()
  const isCurrent = (untilMs: number) => untilMs === Number.POSITIVE_INFINITY || clock.now().getTime() < untilMs

  function find(job: Job, { origin, mountPrefix }: LinkBase): Buffer | null {
    const known = encoded.get(job)
    const isSame = known?.origin === origin && known.mountPrefix === mountPrefix && isCurrent(known.untilMs)
    return isSame ? known.bytes : null
  }

  function* inSteps(job: Job, base: LinkBase): Work<Buffer> {
    const known = find(job, base)
    if (known !== null) return known
    const { origin, mountPrefix } = base
    const untilMs = job.outputs.length === 0 ? Number.POSITIVE_INFINITY : contentLinks.steadyUntilMs()
    const bytes = yield* encode(job, { origin, mountPrefix, contentLinks }, linkStyle)
    if (askedFor.has(job) || job.outputs.length > STEP_OUTPUTS)
      encoded.set(job, { origin, mountPrefix, bytes, untilMs })
    else askedFor.add(job)
    return bytes
  }

  const jobBytes = (job: Job, base: LinkBase) => find(job, base) ?? finishNow(inSteps(job, base))
  return Object.assign(jobBytes, {
    inSteps,
    isQuick: (job: Job, base: LinkBase) => job.outputs.length <= STEP_OUTPUTS || find(job, base) !== null,
  })
}

function* encode(job: Job, base: ViewBase, linkStyle: JobLinkStyle): Work<Buffer> {
  const text = JSON.stringify(toJobView(job, base, linkStyle))
  if (job.outputs.length === 0) return Buffer.from(text)
  const pieces: string[] = []
  for (const [index, output] of job.outputs.entries()) {
    pieces.push(toOutputText(output, job, base))
    if (index % STEP_OUTPUTS === STEP_OUTPUTS - 1) yield
  }
  // The first match is the member itself: within a text before it the quotes would be escaped.
  const at = text.indexOf(NO_OUTPUTS) + NO_OUTPUTS.length - 1
  return Buffer.from(`${text.slice(0, at)}${pieces.join(',')}${text.slice(at)}`)
}

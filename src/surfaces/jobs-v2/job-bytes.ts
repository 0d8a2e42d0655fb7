/**
 * A job's answer as bytes, made once per snapshot. Jobs are immutable, so the bytes live exactly as long as the snapshot does;
 * the last caller's base is remembered with them, because links depend on it and callers hardly ever differ. Signed addresses
 * age: bytes that hold some are made anew in time.
 */
import type { Job } from '../../domain/jobs/job.ts'
import type { Clock } from '../../lib/clock.ts'
import type { ContentLinks } from './content-links.ts'
import { toJobView } from './job-view.ts'
import type { JobLinkStyle, LinkBase } from './links.ts'

export type JobBytes = (job: Job, base: LinkBase) => Buffer

interface Encoded extends LinkBase {
  readonly bytes: Buffer
  readonly untilMs: number
}

export interface JobBytesOptions {
  readonly contentLinks: ContentLinks
  readonly linkStyle: JobLinkStyle
  readonly clock: Clock
}

export function createJobBytes({ contentLinks, linkStyle, clock }: JobBytesOptions): JobBytes {
  const encoded = new WeakMap<Job, Encoded>()
  const isCurrent = (untilMs: number) => untilMs === Number.POSITIVE_INFINITY || clock.now().getTime() < untilMs
  return (job, base) => {
    const { origin, mountPrefix } = base
    const known = encoded.get(job)
    if (known?.origin === origin && known.mountPrefix === mountPrefix && isCurrent(known.untilMs)) return known.bytes
    const untilMs = job.outputs.length === 0 ? Number.POSITIVE_INFINITY : contentLinks.steadyUntilMs()
    const bytes = Buffer.from(JSON.stringify(toJobView(job, { origin, mountPrefix, contentLinks }, linkStyle)))
    encoded.set(job, { origin, mountPrefix, bytes, untilMs })
    return bytes
  }
}

/**
 * A job's answer as bytes, made once per snapshot. Jobs are immutable, so the bytes live exactly as long as the snapshot does;
 * the last caller's base is remembered with them, because links depend on it and callers hardly ever differ.
 */
import type { Job } from '../../domain/jobs/job.ts'
import { toJobView } from './job-view.ts'
import type { LinkBase } from './links.ts'

export type JobBytes = (job: Job, base: LinkBase) => Buffer

interface Encoded extends LinkBase {
  readonly bytes: Buffer
}

export function createJobBytes(): JobBytes {
  const encoded = new WeakMap<Job, Encoded>()
  return (job, base) => {
    const known = encoded.get(job)
    if (known !== undefined && known.origin === base.origin && known.mountPrefix === base.mountPrefix)
      return known.bytes
    const bytes = Buffer.from(JSON.stringify(toJobView(job, base)))
    encoded.set(job, { origin: base.origin, mountPrefix: base.mountPrefix, bytes })
    return bytes
  }
}

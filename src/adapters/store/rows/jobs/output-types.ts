/** Which types the outputs of a job have, as one number: jobs that made the same kinds of things lie together in an index. */
import type { OutputType } from '../../../../domain/jobs/job.ts'

const BITS: Readonly<Record<OutputType, number>> = { image: 1, video: 2, audio: 4, text: 8, file: 16, latent: 32 }

const cases = Object.entries(BITS).map(([type, bit]) => `WHEN '${type}' THEN ${bit}`)

/** SQL, over rows with a column `type`. */
export const OUTPUT_TYPES = `sum(DISTINCT CASE type ${cases.join(' ')} ELSE 0 END)`

/** Those of `masks` that have the type; `any`: all of them. */
export function masksWith(type: OutputType | 'any', masks: readonly number[]): readonly number[] {
  return type === 'any' ? masks : masks.filter((mask) => (mask & BITS[type]) !== 0)
}

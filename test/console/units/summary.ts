/** A job as lists carry it, with what a test does not care about filled in. */
import type { Summary } from '../../../console/src/api/summary.ts'

export function summary(parts: Partial<Summary> & Pick<Summary, 'id'>): Summary {
  return {
    ...{ version: 1, status: 'queued', title: '', pool: 'common', engine: null, priority: 0, attempt: 1 },
    ...{ created_at: '2026-11-16T10:00:00.000Z', started_at: null, completed_at: null },
    ...{ expires_at: '2026-11-23T10:00:00.000Z', value: null, node: null, step: null, steps: null, error: null },
    ...{ cost_usd: null, outputs: 0, thumb: null, queue_position: null, reused_from: null, metadata: {} },
    ...parts,
  }
}

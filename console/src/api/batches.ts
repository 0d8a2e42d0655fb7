/** Jobs that came in one request, as `GET /api/v2/batches/{id}` tells of them. */
import { getJson, send } from './client.ts'
import type { Counts, JobStatus } from './summary.ts'

export interface BatchItem {
  readonly index: number
  /** null: it was refused. */
  readonly job_id: string | null
  /** null: it was refused, or its job is gone. */
  readonly status: JobStatus | null
  readonly error: { readonly code: string; readonly message: string } | null
}

export interface Batch {
  readonly id: string
  readonly created_at: string
  readonly expires_at: string
  readonly mode: 'all_or_nothing' | 'per_item'
  readonly total: number
  readonly accepted: number
  readonly refused: number
  readonly counts: Counts
  /** 0 to 1. */
  readonly progress: number
  readonly is_done: boolean
  readonly items: readonly BatchItem[]
}

const at = (id: string, rest = '') => `/api/v2/batches/${encodeURIComponent(id)}${rest}`

export const getBatch = (id: string, signal?: AbortSignal) => getJson<Batch>(at(id), signal)

export const cancelBatch = (id: string) => send('POST', at(id, '/cancel'))

/** What its jobs have made by now, as one file. */
export const batchZip = (base: string, id: string) => `${base}${at(id, '/outputs.zip')}`

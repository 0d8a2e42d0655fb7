/** One thing for many jobs: the service does it, so that a page that is closed changes nothing. */
import { getJson, send } from './client.ts'

export type BulkKind = 'cancel' | 'rerun' | 'prioritize' | 'download'

/** Whose jobs: one's own, or, for the operator, those of all accounts. */
export type BulkScope = 'own' | 'all'

/** Either these, or all that fit; of an operator's, perhaps those of one account. */
export interface BulkChoice {
  readonly of: { readonly job_ids: readonly string[] } | { readonly filter: Readonly<Record<string, string>> }
  readonly account?: string | null
}

export interface BulkWish extends BulkChoice {
  readonly kind: BulkKind
  readonly isOnlyWaiting: boolean
  readonly priority: number | null
}

interface BulkPreview {
  readonly count: number
  readonly has_more: boolean
  /** Jobs that came later are left out with this as `until`. */
  readonly as_of: string
}

export interface BulkAction {
  readonly id: string
  readonly action: BulkKind
  readonly filter: Readonly<Record<string, string>> | null
  readonly job_ids: number | null
  readonly only_waiting: boolean
  readonly priority: number | null
  readonly has_more: boolean
  readonly total: number
  readonly done: number
  readonly skipped: number
  readonly refused: number
  /** 0 to 1. */
  readonly progress: number
  readonly state: 'working' | 'done' | 'stopped'
  readonly reason: { readonly code: string; readonly message: string } | null
  readonly parts: number
  readonly created_at: string
  readonly ended_at: string | null
  readonly expires_at: string
}

export interface BulkItem {
  readonly place: number
  readonly job_id: string
  readonly outcome: 'waiting' | 'done' | 'skipped' | 'refused'
  readonly new_job_id: string | null
  readonly code: string | null
  readonly message: string | null
}

const ROOT: Readonly<Record<BulkScope, string>> = { own: '/api/v2/bulk-actions', all: '/admin/v1/bulk-actions' }
const at = (scope: BulkScope, id: string, rest = '') => `${ROOT[scope]}/${encodeURIComponent(id)}${rest}`

function toBody({ kind, of, account, isOnlyWaiting, priority }: BulkWish) {
  return {
    ...{ action: kind, ...of },
    ...(account != null && { account }),
    ...(isOnlyWaiting && { only_waiting: true }),
    ...(priority !== null && { priority }),
  }
}

export function previewBulk(scope: BulkScope, wish: BulkWish): Promise<BulkPreview> {
  return send('POST', ROOT[scope], { ...toBody(wish), dry_run: true })
}

export function createBulk(scope: BulkScope, wish: BulkWish): Promise<BulkAction> {
  return send('POST', ROOT[scope], toBody(wish))
}

export const listBulk = (scope: BulkScope, signal?: AbortSignal) =>
  getJson<{ readonly bulk_actions: readonly BulkAction[] }>(ROOT[scope], signal)

export const getBulk = (scope: BulkScope, id: string, signal?: AbortSignal) =>
  getJson<BulkAction>(at(scope, id), signal)

export const stopBulk = (scope: BulkScope, id: string) => send<BulkAction>('POST', at(scope, id, '/stop'))

interface ItemPage {
  readonly jobs: readonly BulkItem[]
  readonly next: number | null
}

export function listBulkItems(
  scope: BulkScope,
  id: string,
  {
    outcome,
    after,
    signal,
  }: { readonly outcome: string | null; readonly after: number; readonly signal?: AbortSignal },
): Promise<ItemPage> {
  const query = new URLSearchParams({ limit: '200' })
  if (outcome !== null) query.set('outcome', outcome)
  if (after > 0) query.set('after', String(after))
  return getJson(at(scope, id, `/jobs?${query}`), signal)
}

/** One archive of a download. */
export const bulkZip = (base: string, id: string, part: number) =>
  `${base}${at('own', id, `/outputs.zip?part=${part}`)}`

/** What is done to many jobs, in the words of the wire, the same for accounts and operators. Bodies are checked against their schema before. */
import { isUuid } from '../../../../lib/ids.ts'
import type { JsonObject } from '../../../../lib/json/lossless-json.ts'
import { invalidField } from '../../../domain/errors.ts'
import type { BulkAction, BulkItem, BulkKind, ItemOutcome } from '../../../domain/jobs/bulk/bulk-action.ts'
import type { BulkActions, BulkWish } from '../../../domain/jobs/bulk/manage-bulk.ts'
import { readNumber } from '../request.ts'
import { readFilterBody } from './job-pages.ts'

/** Throws invalid_request and invalid_field. */
export function readBulkWish(body: JsonObject): BulkWish & { readonly isDry: boolean } {
  const { action, filter, job_ids: ids, only_waiting: isOnlyWaiting, priority, dry_run: isDry } = body
  const jobIds = (ids ?? []) as readonly string[]
  if (!jobIds.every(isUuid)) throw invalidField('job_ids', 'must be ids of jobs')
  const words = (filter ?? {}) as Readonly<Record<string, string>>
  const { like = null, ...rest } = words
  if (like !== null && !isUuid(like)) throw invalidField('filter.like', 'must be an id')
  return {
    kind: action as BulkKind,
    isOnlyWaiting: isOnlyWaiting === true,
    priority: priority === undefined ? null : Number(priority),
    isDry: isDry === true,
    ...(filter === undefined
      ? { of: { jobIds }, asked: { jobIds: jobIds.length } }
      : { of: { filter: readFilterBody(rest), like }, asked: { filter: words } }),
  }
}

type Preview = Awaited<ReturnType<BulkActions['preview']>>

export function toPreviewView(kind: BulkKind, { count, hasMore, asOf }: Preview) {
  return { action: kind, count, has_more: hasMore, as_of: asOf.toISOString() }
}

/** `root`: the address of all of them; `codeOf`: a refusal in the words of the surface. */
export function toBulkView(action: BulkAction, root: string, codeOf: (kept: string) => string) {
  const { id, kind, asked, total, done, skipped, refused, state, reason, parts } = action
  const self = `${root}/${id}`
  return {
    ...{ id, action: kind },
    filter: 'filter' in asked ? asked.filter : null,
    job_ids: 'jobIds' in asked ? asked.jobIds : null,
    ...{ only_waiting: action.isOnlyWaiting, priority: action.priority, has_more: action.hasMore },
    ...{ total, done, skipped, refused },
    // To a thousandth, downwards: 1 means that each has been dealt with.
    progress: total === 0 ? 1 : Math.floor((1000 * (done + skipped + refused)) / total) / 1000,
    ...{ state, reason: reason === null ? null : { code: codeOf(reason.code), message: reason.message }, parts },
    created_at: action.createdAt.toISOString(),
    ended_at: action.endedAt?.toISOString() ?? null,
    expires_at: action.expiresAt.toISOString(),
    urls: {
      ...{ self, jobs: `${self}/jobs`, stop: `${self}/stop` },
      outputs: kind === 'download' && parts > 0 ? `${self}/outputs.zip` : null,
    },
  }
}

export function toBulkItemView(item: BulkItem, codeOf: (kept: string) => string) {
  const { place, jobId, outcome, madeId, code, message } = item
  return { place, job_id: jobId, outcome, new_job_id: madeId, code: code === null ? null : codeOf(code), message }
}

const OUTCOMES: readonly string[] = ['waiting', 'done', 'skipped', 'refused'] satisfies ItemOutcome[]
export const ITEM_PARAMETERS = ['outcome', 'after', 'limit']
const MAX_PLACE = 10_000
const MAX_ITEMS = 1000

/** Throws invalid_request and invalid_field. */
export function readItemQuery(parameters: ReadonlyMap<string, string>) {
  const outcome = parameters.get('outcome') ?? null
  if (outcome !== null && !OUTCOMES.includes(outcome))
    throw invalidField('outcome', `must be one of ${OUTCOMES.join(', ')}`)
  const after = parameters.has('after') ? readNumber(parameters, 'after', { fallback: 1, max: MAX_PLACE }) : 0
  const limit = readNumber(parameters, 'limit', { fallback: 100, max: MAX_ITEMS })
  return { after, limit, outcome: outcome as ItemOutcome | null }
}

/** Which archive of a download. */
export function readPart(parameters: ReadonlyMap<string, string>): number {
  return readNumber(parameters, 'part', { fallback: 1, max: MAX_PLACE })
}

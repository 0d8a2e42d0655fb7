/**
 * What is done to many jobs, in the hands of whoever asks for it. The jobs are chosen and recorded together with the wish, so from then
 * on it is known which they are; the service does the rest, whoever looks on and whatever process dies (run-bulk.ts).
 */
import { createHash } from 'node:crypto'
import type { Clock } from '../../../../lib/clock.ts'
import type { NewId } from '../../../../lib/ids.ts'
import { isUuid } from '../../../../lib/ids.ts'
import { invalidField, ServiceError } from '../../errors.ts'
import { mustBePriority } from '../submit/submit-times.ts'
import {
  type AskedJobs,
  type BulkAction,
  type BulkItem,
  type ItemOutcome,
  MAX_BULK_JOBS,
  MAX_WORKING,
} from './bulk-action.ts'
import type { BulkOwner, BulkStore, NewBulkAction } from './bulk-store.ts'
import type { BulkChoice, SelectedJob, SelectJobs } from './select-jobs.ts'

export interface BulkWish extends BulkChoice {
  /** Of a change of the priority. */
  readonly priority: number | null
  /** As it was asked for, to be told. */
  readonly asked: AskedJobs
  /** The operator's: jobs of this account alone; null or left out: of all accounts. */
  readonly within?: string | null
}

/** Who asks. */
interface BulkAsker {
  readonly owner: BulkOwner
  readonly keyId: string | null
  /** Of the operator's. */
  readonly actor: string | null
}

interface BulkPreview {
  readonly count: number
  readonly hasMore: boolean
  readonly asOf: Date
}

interface ItemPage {
  readonly items: readonly BulkItem[]
  /** null: there are no more. */
  readonly next: number | null
}

/** All but `preview`, `create` and `list` throw not_found. */
export interface BulkActions {
  /** How many it would be. */
  preview(owner: BulkOwner, wish: BulkWish): Promise<BulkPreview>
  /** `through`: writes it; left out: the store. With a key that made one before, that one. */
  create(asker: BulkAsker, wish: BulkWish, options: BulkOptions): Promise<BulkAction>
  /** The newest first, a bounded number. */
  list(owner: BulkOwner): Promise<readonly BulkAction[]>
  find(owner: BulkOwner, id: string): Promise<BulkAction>
  listItems(owner: BulkOwner, id: string, query: ItemWish): Promise<ItemPage>
  /** The jobs of one archive of a download. */
  listPart(owner: BulkOwner, id: string, part: number): Promise<readonly BulkItem[]>
  /** Jobs whose turn has not come stay as they are. Harmless where it has ended. */
  stop(owner: BulkOwner, id: string, through?: Pick<BulkStore, 'stop'>): Promise<BulkAction>
}

interface BulkOptions {
  readonly idempotencyKey: string | null
  readonly through?: (made: Pick<BulkAction, 'id' | 'total'>) => Pick<BulkStore, 'create'>
}

interface ItemWish {
  readonly after: number
  readonly limit: number
  readonly outcome: ItemOutcome | null
}

interface BulkDeps {
  readonly store: Pick<BulkStore, 'create' | 'list' | 'find' | 'listItems' | 'listPart' | 'stop'>
  readonly select: SelectJobs
  readonly newId: NewId
  readonly clock: Clock
  /** There is something to do. */
  readonly onCreated: () => void
}

const LISTED = 50
const KEPT_MS = 7 * 24 * 60 * 60_000
const MAX_PART_JOBS = 500
const MAX_PART_FILES = 5000

export function createBulkActions({ store, select, newId, clock, onCreated }: BulkDeps): BulkActions {
  async function find(owner: BulkOwner, id: string): Promise<BulkAction> {
    const action = isUuid(id) ? await store.find(owner, id) : null
    if (action === null) throw noSuchAction()
    return action
  }

  return {
    async preview(owner, wish) {
      mustMakeSense(wish)
      const asOf = clock.now()
      const { jobs, hasMore } = await select(owner ?? wish.within ?? null, wish)
      return { count: jobs.length, hasMore, asOf }
    },
    async create({ owner, keyId, actor }, wish, { idempotencyKey, through }) {
      mustMakeSense(wish)
      const { jobs, hasMore } = await select(owner ?? wish.within ?? null, wish)
      const { kind, asked, isOnlyWaiting, priority } = wish
      const now = clock.now()
      const items = toItems(wish, jobs)
      const total = items.length
      const isAtWork = kind !== 'download' && total > 0
      const action: NewBulkAction = {
        ...{ id: newId(), accountId: owner, keyId, actor, kind, asked, isOnlyWaiting, priority, hasMore, total },
        ...{ done: isAtWork ? 0 : total, skipped: 0, refused: 0, parts: items.at(-1)?.part ?? 0, reason: null },
        ...{ state: isAtWork ? 'working' : 'done', createdAt: now, endedAt: isAtWork ? null : now },
        ...{ expiresAt: new Date(now.getTime() + KEPT_MS), idempotencyKey, digest: toDigest(wish) },
      }
      const created = await (through?.(action) ?? store).create(action, items, MAX_WORKING)
      switch (created.outcome) {
        case 'created':
          onCreated()
          return action
        case 'key_reused':
          if (created.digest === action.digest) return created.action
          throw new ServiceError(
            'idempotency_key_reuse',
            'this Idempotency-Key was used for something else; nothing was done',
          )
        case 'too_many':
          throw new ServiceError('rate_limited', `${MAX_WORKING} of these are at work; wait for one, or stop one`, {
            retryAfterSeconds: 5,
          })
      }
    },
    list: (owner) => store.list(owner, LISTED),
    find,
    async listItems(owner, id, { after, limit, outcome }) {
      await find(owner, id)
      const found = await store.listItems(id, { after, limit: limit + 1, outcome })
      const items = found.slice(0, limit)
      return { items, next: found.length > limit ? (items.at(-1)?.place ?? null) : null }
    },
    async listPart(owner, id, part) {
      const { kind, parts } = await find(owner, id)
      if (kind !== 'download') throw new ServiceError('not_found', 'this is no download')
      if (part > parts) throw new ServiceError('not_found', `this download has ${parts} parts`)
      return store.listPart(id, part)
    },
    async stop(owner, id, through = store) {
      await find(owner, id)
      const stopped = await through.stop(owner, id, clock.now(), { code: 'stopped', message: 'it was stopped by hand' })
      if (stopped === null) throw noSuchAction()
      return stopped
    },
  }
}

function noSuchAction(): ServiceError {
  return new ServiceError('not_found', 'there is no bulk action with this id')
}

function mustMakeSense({ kind, priority, isOnlyWaiting }: BulkWish): void {
  if ((kind === 'prioritize') !== (priority !== null))
    throw invalidField('priority', 'must be given to prioritize, and for nothing else')
  if (priority !== null) mustBePriority(priority)
  if (isOnlyWaiting && kind !== 'cancel') throw invalidField('only_waiting', 'is for cancel alone')
}

/** Archives are bounded, in jobs and in files. */
function toItems({ kind }: BulkWish, jobs: readonly SelectedJob[]): BulkItem[] {
  let [part, inPart, files] = [1, 0, 0]
  return jobs.slice(0, MAX_BULK_JOBS).map(({ id: jobId, accountId, outputs }, index) => {
    const isFull = inPart > 0 && (inPart === MAX_PART_JOBS || files + outputs > MAX_PART_FILES)
    if (kind === 'download' && isFull) [part, inPart, files] = [part + 1, 0, 0]
    inPart += 1
    files += outputs
    const outcome = kind === 'download' ? 'done' : 'waiting'
    return { place: index + 1, part, accountId, jobId, outcome, madeId: null, code: null, message: null }
  })
}

function toDigest({ kind, isOnlyWaiting, priority, of, asked, within = null }: BulkWish): string {
  const jobs = 'jobIds' in of ? of.jobIds : asked
  return createHash('sha256')
    .update(JSON.stringify([kind, isOnlyWaiting, priority, jobs, within]))
    .digest('base64url')
}

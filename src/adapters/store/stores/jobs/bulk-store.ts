/** What is done to many jobs at once. Whoever deals with one holds a lease, and writes what became of its jobs only under that. */
import type { BulkAction, BulkItem } from '../../../../domain/jobs/bulk/bulk-action.ts'
import type { BulkOwner, BulkStore, ItemEnd } from '../../../../domain/jobs/bulk/bulk-store.ts'
import { all, chore, defineStore, durable, get, read, run, type Steps } from '../../statements/operation.ts'
import { command, insertInto, query, selectFrom, toRows } from '../../statements/statement.ts'
import { bulkAction, bulkItem } from '../../tables/bulk-actions.ts'
import { encode, integer, omit, pick, type RowOf, shape } from '../../tables/table.ts'

const told = omit(bulkAction, 'idempotencyKey', 'digest', 'changedAt', 'leaseId', 'heldUntil')
const toldItem = omit(bulkItem, 'actionId')
const OWN = 'owner_id = :ownerId AND id = :id'
const FREE = `state = 'working' AND (held_until IS NULL OR held_until <= :now)`
const MINE = `id = :id AND lease_id = :leaseId AND state = 'working'`

const LOCK_ACCOUNT = query(
  'bulk.lockAccount',
  shape({ one: integer('integer') }),
  ({ lock }) => `SELECT 1 AS one FROM account WHERE id = :ownerId ${lock('NO KEY UPDATE')}`,
)
const known = pick(bulkAction, 'id', 'digest')
const FIND_BY_KEY = query(
  'bulk.findByKey',
  known,
  selectFrom(bulkAction, 'WHERE owner_id = :ownerId AND idempotency_key = :idempotencyKey', known),
)
const COUNT_WORKING = query(
  'bulk.countWorking',
  shape({ count: integer() }),
  `SELECT count(*) AS count FROM bulk_action WHERE owner_id = :ownerId AND state = 'working'`,
)
const INSERT = command('bulk.insert', `${insertInto(bulkAction)} ON CONFLICT DO NOTHING`)
const ITEM = { place: 'bigint', part: 'bigint', account_id: 'text', job_id: 'text', outcome: 'text' } as const
const INSERT_ITEMS = command(
  'bulk.insertItems',
  ({ rows }) => `INSERT INTO bulk_item (action_id, place, part, account_id, job_id, outcome)
    SELECT :id, place, part, account_id, job_id, outcome FROM ${rows(':items', ITEM)} AS item`,
)
const LIST = query(
  'bulk.list',
  told,
  selectFrom(bulkAction, 'WHERE owner_id = :ownerId ORDER BY created_at DESC, id DESC LIMIT :limit', told),
)
const FIND = query('bulk.find', told, selectFrom(bulkAction, `WHERE ${OWN}`, told))
const LIST_ITEMS = query(
  'bulk.listItems',
  toldItem,
  selectFrom(bulkItem, 'WHERE action_id = :id AND place > :after ORDER BY place LIMIT :limit', toldItem),
)
const LIST_ITEMS_WITH = query(
  'bulk.listItemsWith',
  toldItem,
  selectFrom(
    bulkItem,
    'WHERE action_id = :id AND place > :after AND outcome = :outcome ORDER BY place LIMIT :limit',
    toldItem,
  ),
)
const LIST_PART = query(
  'bulk.listPart',
  toldItem,
  selectFrom(bulkItem, 'WHERE action_id = :id AND part = :part ORDER BY place', toldItem),
)
const STOP = command(
  'bulk.stop',
  `UPDATE bulk_action SET state = 'stopped', reason = :reason, ended_at = :at, changed_at = :at, lease_id = NULL, held_until = NULL
   WHERE ${OWN} AND state = 'working'`,
)
const DUE = query('bulk.due', told, selectFrom(bulkAction, `WHERE ${FREE} ORDER BY changed_at, id LIMIT :limit`, told))
const TAKE = command(
  'bulk.take',
  `UPDATE bulk_action SET lease_id = :leaseId, held_until = :heldUntil, changed_at = :now WHERE id = :id AND ${FREE}`,
)
const FIND_HELD = query('bulk.findHeld', told, selectFrom(bulkAction, `WHERE ${MINE}`, told))
const WAITING = query(
  'bulk.waiting',
  toldItem,
  selectFrom(bulkItem, `WHERE action_id = :id AND outcome = 'waiting' ORDER BY place LIMIT :limit`, toldItem),
)
const LOCK = query(
  'bulk.lock',
  pick(bulkAction, 'id'),
  ({ lock }) => `SELECT id FROM bulk_action WHERE ${MINE} ${lock('NO KEY UPDATE')}`,
)
const END = { place: 'bigint', outcome: 'text', made_id: 'text', code: 'text', message: 'text' } as const
const NOTE_ITEMS = command(
  'bulk.noteItems',
  ({
    rows,
  }) => `UPDATE bulk_item SET outcome = ending.outcome, made_id = ending.made_id, code = ending.code, message = ending.message
    FROM ${rows(':ends', END)} AS ending
    WHERE bulk_item.action_id = :id AND bulk_item.place = ending.place AND bulk_item.outcome = 'waiting'`,
)
const NOTE = command(
  'bulk.note',
  `UPDATE bulk_action SET done = done + :done, skipped = skipped + :skipped, refused = refused + :refused, reason = NULL,
     changed_at = :now, held_until = :heldUntil
   WHERE ${MINE}`,
)
const PUT_OFF = command(
  'bulk.putOff',
  `UPDATE bulk_action SET held_until = :until, lease_id = NULL, reason = :reason WHERE ${MINE}`,
)
const FINISH = command(
  'bulk.finish',
  `UPDATE bulk_action SET state = :state, reason = :reason, ended_at = :at, changed_at = :at, lease_id = NULL, held_until = NULL
   WHERE ${MINE}`,
)
const OLD = query(
  'bulk.old',
  pick(bulkAction, 'id'),
  'SELECT id FROM bulk_action WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit',
)
const REMOVE_ITEMS = command(
  'bulk.removeItems',
  ({ isIn }) => `DELETE FROM bulk_item WHERE ${isIn('action_id', ':ids')}`,
)
const REMOVE = command('bulk.remove', ({ isIn }) => `DELETE FROM bulk_action WHERE ${isIn('id', ':ids')}`)

// No account has this id.
const toOwnerId = (owner: BulkOwner): string => owner ?? ''

function toAction({ ownerId, ...row }: RowOf<typeof told>): BulkAction {
  return { ...row, accountId: ownerId === '' ? null : ownerId }
}

function* find(owner: BulkOwner, id: string): Steps<BulkAction | null> {
  const row = yield* get(FIND, { ownerId: toOwnerId(owner), id })
  return row === undefined ? null : toAction(row)
}

const toItemRow = ({ place, part, accountId, jobId, outcome }: BulkItem) => ({
  ...{ place, part, account_id: accountId, job_id: jobId, outcome },
})
const toEndRow = ({ place, outcome, madeId, code, message }: ItemEnd) => ({
  ...{ place, outcome, made_id: madeId, code, message },
})

const countWith = (ends: readonly ItemEnd[], wanted: BulkItem['outcome']) =>
  ends.filter(({ outcome }) => outcome === wanted).length

// About what a job of one takes in memory on its way.
const ITEM_BYTES = 150

export const bulkStore = defineStore<BulkStore>('bulk', {
  create: durable(
    function* (action, items, maxWorking) {
      const { accountId, idempotencyKey } = action
      const ownerId = toOwnerId(accountId)
      yield* get(LOCK_ACCOUNT, { ownerId })
      const held = idempotencyKey === null ? undefined : yield* get(FIND_BY_KEY, { ownerId, idempotencyKey })
      const before = held === undefined ? null : yield* find(accountId, held.id)
      if (held !== undefined && before !== null)
        return { outcome: 'key_reused', action: before, digest: held.digest } as const
      const isAtWork = action.state === 'working'
      if (isAtWork && ((yield* get(COUNT_WORKING, { ownerId }))?.count ?? 0) >= maxWorking)
        return { outcome: 'too_many' } as const
      const free = { ownerId, changedAt: action.createdAt, leaseId: null, heldUntil: null }
      yield* run(INSERT, encode(bulkAction, { ...action, ...free }))
      if (items.length > 0) yield* run(INSERT_ITEMS, { id: action.id, ...toRows('items', items.map(toItemRow)) })
      return { outcome: 'created' } as const
    },
    { weigh: (_action, items) => items.length * ITEM_BYTES },
  ),
  list: read(function* (owner, limit) {
    return (yield* all(LIST, { ownerId: toOwnerId(owner), limit })).map(toAction)
  }),
  find: read(find),
  listItems: read(function* (id, { after, limit, outcome }) {
    return yield* outcome === null
      ? all(LIST_ITEMS, { id, after, limit })
      : all(LIST_ITEMS_WITH, { id, after, limit, outcome })
  }),
  listPart: read(function* (id, part) {
    return yield* all(LIST_PART, { id, part })
  }),
  stop: durable(
    function* (owner, id, at, reason) {
      yield* run(STOP, { ownerId: toOwnerId(owner), id, ...encode(bulkAction, { reason }), at })
      return yield* find(owner, id)
    },
    { isEssential: true },
  ),
  findDue: read(function* (now, limit) {
    return (yield* all(DUE, { now, limit })).map(toAction)
  }),
  take: durable(function* ({ id, leaseId }, now, heldUntil) {
    if ((yield* run(TAKE, { id, leaseId, now, heldUntil })) === 0) return null
    const row = yield* get(FIND_HELD, { id, leaseId })
    return row === undefined ? null : toAction(row)
  }),
  readWaiting: read(function* (id, limit) {
    return yield* all(WAITING, { id, limit })
  }),
  note: durable(function* ({ id, leaseId }, ends, now, heldUntil) {
    if ((yield* get(LOCK, { id, leaseId })) === undefined) return false
    if (ends.length > 0) yield* run(NOTE_ITEMS, { id, ...toRows('ends', ends.map(toEndRow)) })
    const counts = {
      ...{ done: countWith(ends, 'done'), skipped: countWith(ends, 'skipped'), refused: countWith(ends, 'refused') },
    }
    yield* run(NOTE, { id, leaseId, ...counts, now, heldUntil })
    return true
  }),
  putOff: durable(function* ({ id, leaseId }, until, reason) {
    yield* run(PUT_OFF, { id, leaseId, until, ...encode(bulkAction, { reason }) })
  }),
  end: durable(
    function* ({ id, leaseId }, at, stoppedFor) {
      const state = stoppedFor === null ? 'done' : 'stopped'
      yield* run(FINISH, { id, leaseId, at, state, ...encode(bulkAction, { reason: stoppedFor }) })
    },
    { isEssential: true },
  ),
  sweep: chore(
    function* (now, limit) {
      const ids = (yield* all(OLD, { now, limit })).map(({ id }) => id)
      if (ids.length === 0) return 0
      yield* run(REMOVE_ITEMS, { ids })
      return yield* run(REMOVE, { ids })
    },
    { isEssential: true },
  ),
})

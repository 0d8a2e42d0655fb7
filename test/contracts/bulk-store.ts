/** How every store keeps what is done to many jobs, and lets one process at a time deal with it. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import type { BulkItem } from '../../src/domain/jobs/bulk/bulk-action.ts'
import type { BulkLease, ItemEnd, NewBulkAction } from '../../src/domain/jobs/bulk/bulk-store.ts'
import {
  at,
  DAY_MS,
  START,
  type StoreOpener,
  shareStore,
  Tenant,
  type WholeStoreUnderTest,
  withStore,
} from './store-under-test.ts'

const REASON = { code: 'queue_full', message: 'the queue is full' }

function newAction(accountId: string | null, fields: Partial<NewBulkAction> = {}): NewBulkAction {
  return {
    ...{ id: randomUUID(), accountId, keyId: 'key', actor: null, kind: 'rerun', asked: { filter: { code: 'x' } } },
    ...{ isOnlyWaiting: false, priority: null, hasMore: false, total: 3, done: 0, skipped: 0, refused: 0, parts: 1 },
    ...{ state: 'working', reason: null, createdAt: START, endedAt: null, expiresAt: at(7 * DAY_MS) },
    ...{ idempotencyKey: null, digest: 'd' },
    ...fields,
  }
}

function newItems(accountId: string, count: number, fields: Partial<BulkItem> = {}): BulkItem[] {
  return Array.from({ length: count }, (_, index) => ({
    ...{ place: index + 1, part: 1, accountId, jobId: randomUUID(), outcome: 'waiting', madeId: null },
    ...{ code: null, message: null, ...fields },
  }))
}

const ended = (place: number, fields: Partial<ItemEnd> = {}): ItemEnd => ({
  ...{ place, outcome: 'done', madeId: null, code: null, message: null, ...fields },
})

/** As whoever asks is told. */
function toTold({ idempotencyKey: _, digest: __, ...told }: NewBulkAction) {
  return told
}

export function testBulkStore(opener: StoreOpener<WholeStoreUnderTest>): void {
  describe('bulk actions', () => {
    const store = shareStore(opener)
    const bulk = () => store().bulkActions

    async function create(fields: Partial<NewBulkAction> = {}, count = 3) {
      const { accountId } = await Tenant.create(store())
      const action = newAction(accountId, { total: count, ...fields })
      const items = newItems(accountId, count)
      assert.deepEqual(await bulk().create(action, items, 10), { outcome: 'created' })
      return { accountId, action, items }
    }
    const leaseOf = (id: string): BulkLease => ({ id, leaseId: randomUUID() })
    const outcomes = async (id: string) =>
      (await bulk().listItems(id, { after: 0, limit: 100, outcome: null })).map(({ outcome }) => outcome)

    test('one is found with its jobs as it was made, by its owner alone', async () => {
      const { accountId, action, items } = await create({ priority: 7, hasMore: true, reason: REASON })
      assert.deepEqual(await bulk().find(accountId, action.id), toTold(action))
      assert.deepEqual(await bulk().list(accountId, 10), [toTold(action)])
      assert.deepEqual(await bulk().listItems(action.id, { after: 1, limit: 1, outcome: null }), [items[1]])
      assert.deepEqual(await bulk().listItems(action.id, { after: 0, limit: 9, outcome: 'done' }), [])
      assert.deepEqual(await bulk().listPart(action.id, 1), items)
      assert.deepEqual(await bulk().listPart(action.id, 2), [])
      for (const other of [randomUUID(), null]) {
        assert.equal(await bulk().find(other, action.id), null)
        assert.equal(
          (await bulk().list(other, 100)).some(({ id }) => id === action.id),
          false,
        )
        assert.equal(await bulk().stop(other, action.id, START, REASON), null)
      }
      assert.equal((await bulk().find(accountId, action.id))?.state, 'working')
    })

    test('the operator has some of their own, over jobs of any account', async () => {
      const { accountId } = await Tenant.create(store())
      const action = newAction(null, { actor: 'admin token', total: 1 })
      await bulk().create(action, newItems(accountId, 1), 1000)
      assert.deepEqual(await bulk().find(null, action.id), toTold(action))
      assert.equal(await bulk().find(accountId, action.id), null)
    })

    test('a key makes one of them, and is told it again; so many may be at work at a time', async () => {
      const { accountId, action } = await create({ idempotencyKey: 'once' })
      const again = newAction(accountId, { idempotencyKey: 'once', digest: 'another' })
      assert.deepEqual(await bulk().create(again, newItems(accountId, 3), 10), {
        ...{ outcome: 'key_reused', action: toTold(action), digest: 'd' },
      })
      assert.deepEqual(await bulk().create(newAction(accountId), [], 1), { outcome: 'too_many' })
      assert.deepEqual(await bulk().create(newAction(accountId, { state: 'done' }), [], 1), { outcome: 'created' })
      assert.equal((await bulk().list(accountId, 10)).length, 2)
    })

    test('one process at a time holds it, until its time is over or it lets go', async () => {
      const { action } = await create()
      const [first, second] = [leaseOf(action.id), leaseOf(action.id)]
      const isDue = async (now: Date) => (await bulk().findDue(now, 1000)).some(({ id }) => id === action.id)
      assert.equal(await isDue(START), true)
      assert.deepEqual(await bulk().take(first, START, at(10)), toTold(action))
      assert.equal(await isDue(at(9)), false)
      assert.equal(await bulk().take(second, at(9), at(20)), null)
      assert.deepEqual(await bulk().take(second, at(10), at(20)), toTold(action))
      // What the first one did meanwhile is not noted twice.
      assert.equal(await bulk().note(first, [ended(1)], at(11), at(30)), false)
      await bulk().putOff(first, at(11), REASON)
      await bulk().end(first, at(11), null)
      assert.deepEqual(await bulk().find(action.accountId, action.id), toTold(action))
      await bulk().putOff(second, at(40), REASON)
      assert.equal(await isDue(at(39)), false)
      assert.equal(await isDue(at(40)), true)
      assert.deepEqual((await bulk().find(action.accountId, action.id))?.reason, REASON)
    })

    test('what became of its jobs is noted once for each, with the counts', async () => {
      const { accountId, action, items } = await create({ reason: REASON }, 4)
      const lease = leaseOf(action.id)
      await bulk().take(lease, START, at(10))
      assert.deepEqual(await bulk().readWaiting(action.id, 2), items.slice(0, 2))
      const made = randomUUID()
      const ends = [
        ended(1, { madeId: made }),
        ended(2, { outcome: 'skipped' }),
        ended(3, { outcome: 'refused', ...REASON }),
      ]
      assert.equal(await bulk().note(lease, ends, at(1), at(20)), true)
      const { done, skipped, refused, reason } = (await bulk().find(accountId, action.id))!
      assert.deepEqual([done, skipped, refused, reason], [1, 1, 1, null])
      assert.deepEqual(await bulk().readWaiting(action.id, 9), [items[3]])
      const [first, , third] = await bulk().listItems(action.id, { after: 0, limit: 9, outcome: null })
      assert.deepEqual([first.madeId, first.code, third.code, third.message], [made, null, REASON.code, REASON.message])
      assert.equal(await bulk().note(lease, [], at(2), at(30)), true)
      await bulk().end(lease, at(3), null)
      const over = (await bulk().find(accountId, action.id))!
      assert.deepEqual([over.state, over.endedAt, over.reason], ['done', at(3), null])
      assert.equal(await bulk().note(lease, [ended(4)], at(4), at(30)), false)
      assert.deepEqual(await outcomes(action.id), ['done', 'skipped', 'refused', 'waiting'])
    })

    test('one that is stopped takes no more, and one that has ended stays as it is', async () => {
      const { accountId, action } = await create()
      const lease = leaseOf(action.id)
      await bulk().take(lease, START, at(10))
      const stopped = await bulk().stop(accountId, action.id, at(1), REASON)
      assert.deepEqual([stopped?.state, stopped?.reason, stopped?.endedAt], ['stopped', REASON, at(1)])
      assert.equal(await bulk().note(lease, [ended(1)], at(2), at(20)), false)
      assert.equal(await bulk().take(leaseOf(action.id), at(50), at(60)), null)
      assert.deepEqual(await bulk().stop(accountId, action.id, at(3), { code: 'x', message: 'y' }), stopped)
      const given = await create()
      const other = leaseOf(given.action.id)
      await bulk().take(other, START, at(10))
      await bulk().end(other, at(2), REASON)
      const { state, reason } = (await bulk().find(given.accountId, given.action.id))!
      assert.deepEqual([state, reason], ['stopped', REASON])
    })

    test('those that are past their time go, with all of their jobs', async () => {
      await withStore(opener, async (own) => {
        const { accountId } = await Tenant.create(own)
        const [old, young] = [newAction(accountId, { expiresAt: at(5) }), newAction(accountId)]
        for (const action of [old, young]) await own.bulkActions.create(action, newItems(accountId, 2), 10)
        assert.equal(await own.bulkActions.sweep(at(4), 10), 0)
        assert.equal(await own.bulkActions.sweep(at(5), 10), 1)
        assert.deepEqual(await own.bulkActions.listPart(old.id, 1), [])
        assert.equal((await own.bulkActions.listPart(young.id, 1)).length, 2)
        assert.deepEqual(await own.bulkActions.list(accountId, 10), [toTold(young)])
      })
    })
  })
}

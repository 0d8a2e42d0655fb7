/** How every store finds jobs over all accounts: what each account finds of its own, together and in order. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type JobRecipe, toTerm } from '../../../src/domain/jobs/submit/job-origin.ts'
import {
  type JobSummary,
  NO_FILTER,
  type SummaryFilter,
  type SummaryPage,
  type SummaryQuery,
} from '../../../src/domain/jobs/summaries/summary-store.ts'
import { at, newJobId, type StoreOpener, Tenant, type WholeStoreUnderTest } from '../store-under-test.ts'

const NOW = at(60_000)
const POSTCARD: JobRecipe = { key: 'postcard', title: 'Postcard', terms: toTerm('class', 'KSampler') }
const POSTER: JobRecipe = { key: 'poster', title: 'Poster', terms: toTerm('weights', 'sdxl.safetensors') }
const FAILURE = { code: 'out_of_memory', message: 'm', nodeId: null, classType: null, traceback: null }

const FILTERS: Readonly<Record<string, Partial<SummaryFilter>>> = {
  nothing: {},
  'jobs that wait': { statuses: ['queued'] },
  'jobs that run': { statuses: ['running', 'canceling'] },
  'jobs that succeeded': { statuses: ['succeeded'] },
  'jobs that failed or were canceled': { statuses: ['failed', 'canceled'] },
  'jobs that wait or failed': { statuses: ['queued', 'failed'] },
  time: { since: at(4), until: at(11) },
  'an error code': { code: 'out_of_memory' },
  'a class': { classType: 'KSampler' },
  weights: { weights: 'sdxl.safetensors' },
  'a class that no job has': { classType: 'Nothing' },
  'an engine': { engine: 'gpu1' },
  'an engine and a status': { engine: 'gpu1', statuses: ['failed'] },
  'the built-in engine': { engine: 'embedded' },
  'the common pool': { pool: 'default' },
  'a deployment': { pool: 'deployment' },
  'a deployment and a status': { pool: 'deployment', statuses: ['queued'] },
  'a label': { metadata: { scene: '1' } },
  'two labels': { metadata: { scene: '1', user: '7' } },
  'a text of a title': { text: 'postc' },
  'a text that is a code': { text: 'out_of_memory' },
}

export function testServiceSummaries(opener: StoreOpener<WholeStoreUnderTest>): void {
  describe('jobs of all accounts in short', () => {
    let opened: Awaited<ReturnType<typeof opener.open>>
    const tenants: Tenant[] = []
    let count = 0

    async function submit(tenant: Tenant): Promise<void> {
      count += 1
      await tenant.submit({
        ...{ id: newJobId(), createdAt: at(Math.floor(count / 2)), recipe: count % 3 === 0 ? POSTER : POSTCARD },
        metadata: { scene: String(count % 2), ...(count % 5 === 0 && { user: '7' }) },
      })
    }

    async function run(tenant: Tenant, engineId: string, isFailed: boolean): Promise<void> {
      const claimed = await tenant.claim({ engines: [{ engineId, lanes: null }] })
      assert.ok(claimed !== null)
      const lease = { jobId: claimed.job.id, leaseId: claimed.leaseId }
      const end = isFailed
        ? ({ status: 'failed', error: FAILURE } as const)
        : { status: 'succeeded' as const, error: null }
      await opened.store.jobs.commit(lease, { finish: { ...end, from: ['running'], at: at(30_000) } })
    }

    before(async () => {
      opened = await opener.open()
      const { store } = opened
      for (const [index, pool] of ['default', 'default', 'deployment'].entries()) {
        await store.accounts.put({ id: `account-${index}`, maxRunning: 10, maxQueued: 1000 })
        const tenant = new Tenant(store, `account-${index}`, pool)
        tenants.push(tenant)
        for (let job = 0; job < 8; job += 1) await submit(tenant)
        for (let job = 0; job < 4; job += 1) await run(tenant, job < 2 ? 'gpu1' : 'embedded', job % 2 === 0)
        await tenant.claim({ engines: [{ engineId: 'gpu1', lanes: null }] })
        const waiting = await searchWhole(tenant.accountId, { statuses: ['queued'] }, 'oldest')
        await store.jobs.cancel(tenant.accountId, waiting[0]?.id ?? '', NOW)
      }
    })
    after(() => opened.close())

    async function searchWhole(
      scope: string | null,
      fields: Partial<SummaryFilter>,
      order: SummaryQuery['order'],
    ): Promise<readonly JobSummary[]> {
      const found: JobSummary[] = []
      let after: SummaryPage['next'] = null
      do {
        const query = { filter: { ...NO_FILTER, ...fields }, order, limit: 3, after, now: NOW }
        const page: SummaryPage = await opened.store.summaries.search(scope, query)
        found.push(...page.summaries)
        after = page.next
      } while (after !== null)
      return found
    }

    for (const [name, fields] of Object.entries(FILTERS)) {
      test(`are found by ${name}, in both orders`, async () => {
        const own = await Promise.all(tenants.map(({ accountId }) => searchWhole(accountId, fields, 'oldest')))
        const expected = own.flat().toSorted(compare)
        const oldest = await searchWhole(null, fields, 'oldest')
        assert.deepEqual(oldest, expected)
        const newest = await searchWhole(null, fields, 'newest')
        assert.deepEqual(newest, expected.toReversed())
        if (fields.text !== undefined) return
        const counts = await opened.store.summaries.count(null, { ...NO_FILTER, ...fields, statuses: null }, NOW)
        const all = await searchWhole(null, { ...fields, statuses: null }, 'oldest')
        assert.deepEqual(counts, {
          ...{ queued: 0, running: 0, canceling: 0, succeeded: 0, failed: 0, canceled: 0, expired: 0 },
          ...Object.fromEntries(
            Object.entries(Object.groupBy(all, ({ status }) => status)).map(([s, l]) => [s, l?.length]),
          ),
        })
      })
    }

    test('are counted by the time of their ends', async () => {
      const none = { queued: 0, running: 0, canceling: 0, succeeded: 0, failed: 0, canceled: 0, expired: 0 }
      const { summaries } = opened.store
      assert.deepEqual(await summaries.countEnded(at(30_000), at(30_001)), { ...none, succeeded: 6, failed: 6 })
      assert.deepEqual(await summaries.countEnded(at(0), at(30_000)), none)
    })

    test('bear their account, and are found by their ids', async () => {
      const all = await searchWhole(null, {}, 'oldest')
      assert.equal(all.length, 24)
      assert.deepEqual([...new Set(all.map(({ accountId }) => accountId))].toSorted(), [
        ...['account-0', 'account-1', 'account-2'],
      ])
      const asked = [all[0]?.id ?? '', all.at(-1)?.id ?? '', newJobId()]
      const found = await opened.store.summaries.findMany(null, asked, NOW)
      assert.deepEqual(found.toSorted(compare), [all[0], all.at(-1)])
      const byId = await searchWhole(null, { text: all[3]?.id ?? '' }, 'newest')
      assert.deepEqual(byId, [all[3]])
    })

    // Last: it adds accounts.
    test('that wait are found by a text and by a class however many accounts they are of', async () => {
      const { store } = opened
      const ids: string[] = []
      for (let index = 0; index < 160; index += 1) {
        const accountId = `one-of-many-${String(index)}`
        await store.accounts.put({ id: accountId, maxRunning: 10, maxQueued: 10 })
        const id = newJobId()
        const recipe = { key: 'rare', title: 'Lighthouse', terms: toTerm('class', 'Rare') }
        await new Tenant(store, accountId, 'default').submit({ id, createdAt: at(40_000 + index), recipe })
        ids.push(id)
      }
      for (const fields of [{ text: 'lightho' }, { classType: 'Rare' }]) {
        const found = await searchWhole(null, fields, 'oldest')
        assert.deepEqual(
          found.map(({ id }) => id),
          ids,
        )
      }
    })
  })
}

function compare(left: JobSummary, right: JobSummary): number {
  return left.createdAt.getTime() - right.createdAt.getTime() || (left.id < right.id ? -1 : 1)
}

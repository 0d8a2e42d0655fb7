/** How every store finds jobs in short: filters, texts, pages in both orders, counts. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { toFailureSignature } from '../../../src/domain/jobs/summaries/failure-signature.ts'
import {
  type JobSummary,
  NO_FILTER,
  type SuggestionWish,
  type SummaryFilter,
} from '../../../src/domain/jobs/summaries/summary-store.ts'
import {
  at,
  DAY_MS,
  newOutput,
  START,
  type StoreOpener,
  shareStore,
  type WholeStoreUnderTest,
} from '../store-under-test.ts'

import { testSummaryDetails } from './summary-details.ts'
import { claim, createNewTenant, NOW, POSTCARD, POSTER, recipeOf } from './summary-rig.ts'

export function testSummaryStore(opener: StoreOpener<WholeStoreUnderTest>): void {
  describe('jobs in short', () => {
    const store = shareStore(opener)
    const newTenant = createNewTenant(store)

    test('show what a list shows, with the title that the submitter or the workflow gives', async () => {
      const { search, submit } = await newTenant()
      const plain = await submit()
      const named = await submit({ metadata: { name: 'scene 12', user: '7' } })
      const [first, second] = await search()
      assert.deepEqual([first?.id, first?.title, second?.id, second?.title], [named, 'scene 12', plain, 'Postcard'])
      const expected: Partial<JobSummary> = {
        ...{ status: 'queued', version: 1, engineId: null, attempt: 0, error: null, charged: null, outputs: 0 },
        ...{
          thumb: null,
          queuePosition: 2,
          metadata: { name: 'scene 12', user: '7' },
          createdAt: at(2),
          startedAt: null,
        },
      }
      for (const [name, value] of Object.entries(expected))
        assert.deepEqual(first?.[name as keyof JobSummary], value, name)
    })

    test('show the end of a run: the beginning of its error, its engine, its first picture', async () => {
      const { tenant, search, submit, run } = await newTenant()
      await submit()
      const failed = await run('out_of_memory')
      await submit()
      const lease = await claim(tenant)
      const outputs = [newOutput({ type: 'text' }), newOutput({ type: 'image' }), newOutput({ type: 'image' })]
      await store().jobs.commit(lease, { outputs })
      const [running, ended] = await search()
      assert.deepEqual([running?.outputs, running?.thumb], [3, { assetId: outputs[1]?.assetId }])
      assert.equal(running?.status, 'running')
      assert.equal(ended?.id, failed)
      assert.deepEqual(ended?.error, { code: 'out_of_memory', message: 'm'.repeat(200), nodeId: '7', classType: 'K' })
      assert.notEqual(ended?.engineId, null)
    })

    test('are found by each filter alone', async () => {
      const { tenant, ids, submit, run, search } = await newTenant()
      const first = await submit({ metadata: { scene: '1' } })
      const second = await submit({ recipe: POSTER, metadata: { scene: '2' } })
      await run('out_of_memory')
      await run()
      const third = await submit({ metadata: { scene: '1', user: '7' } })
      const engine = (await search({ statuses: ['failed'] }))[0]?.engineId ?? null
      assert.deepEqual(await ids(), [third, second, first])
      assert.deepEqual(await ids({ statuses: ['failed', 'queued'] }), [third, first])
      assert.deepEqual(await ids({ since: at(2) }), [third, second])
      assert.deepEqual(await ids({ until: at(2) }), [first])
      assert.deepEqual(await ids({ metadata: { scene: '1' } }), [third, first])
      assert.deepEqual(await ids({ metadata: { scene: '1', user: '7' } }), [third])
      assert.deepEqual(await ids({ code: 'out_of_memory' }), [first])
      assert.deepEqual(await ids({ code: 'other' }), [])
      assert.deepEqual(await ids({ classType: 'KSampler' }), [third, first])
      assert.deepEqual(await ids({ classType: 'Sampler' }), [], 'a class is named whole')
      assert.deepEqual(await ids({ weights: 'sdxl.safetensors' }), [second])
      assert.deepEqual(await ids({ classType: 'SaveImage', weights: 'flux1-dev.safetensors' }), [third, first])
      assert.deepEqual(await ids({ engine }), [second, first])
      assert.deepEqual(await ids({ engine: 'nowhere' }), [])
      assert.deepEqual(await ids({ pool: 'default' }), [])
      assert.deepEqual(await ids({ pool: tenant.pool }), [third, second, first])
    })

    test('are found by a text: an id or its beginning, a value, a code, a part of a title, class or weights', async () => {
      const { ids, submit, run } = await newTenant()
      const first = await submit({ metadata: { scene: 'harbour at night' } })
      const second = await submit({ recipe: POSTER })
      await run('out_of_memory')
      assert.deepEqual(await ids({ text: first }), [first])
      assert.ok((await ids({ text: second.slice(0, 30) })).includes(second))
      assert.deepEqual(await ids({ text: 'harbour' }), [first])
      assert.deepEqual(await ids({ text: 'out_of_memory' }), [first])
      assert.deepEqual(await ids({ text: 'LARGE' }), [second])
      assert.deepEqual(await ids({ text: 'ksampler' }), [first])
      assert.deepEqual(await ids({ text: 'safetensors' }), [second, first])
      assert.deepEqual(await ids({ text: 'safetensors', statuses: ['queued'] }), [second])
      assert.deepEqual(await ids({ text: 'nothing of the kind' }), [])
      assert.deepEqual(await ids({ text: '100%_\\' }), [])
    })

    test('have words that complete what is typed, each once, and only those of their account', async () => {
      const { accountId, submit } = await newTenant()
      const { submit: ofOther } = await newTenant()
      for (const scene of ['1', '12', '2', '12']) await submit({ metadata: { scene, studio: 'a' } })
      await submit({ recipe: POSTER })
      await ofOther({ metadata: { secret: 'theirs' } })
      const suggest = (wish: SuggestionWish, limit = 10) => store().summaries.suggest(accountId, wish, limit)
      assert.deepEqual(await suggest({ of: 'keys', text: 's' }), ['scene', 'studio'])
      assert.deepEqual(await suggest({ of: 'keys', text: 'st' }), ['studio'])
      assert.deepEqual(await suggest({ of: 'keys', text: '' }, 1), ['scene'])
      assert.deepEqual(await suggest({ of: 'values', key: 'scene', text: '1' }), ['1', '12'])
      assert.deepEqual(await suggest({ of: 'values', key: 'secret', text: '' }), [])
      assert.deepEqual(await suggest({ of: 'classes', text: 'ksam' }), ['KSampler'])
      assert.deepEqual(await suggest({ of: 'weights', text: 'SDXL' }), ['sdxl.safetensors'])
      assert.deepEqual(await suggest({ of: 'weights', text: 'ksampler' }), [])
    })

    test('titles are of jobs, not of recipes: each is found by its own', async () => {
      const { ids, search, submit, run } = await newTenant()
      const ann = await submit({ recipe: { ...POSTCARD, title: 'Card for Ann' } })
      const bob = await submit({ recipe: { ...POSTCARD, title: 'Card for Bob' } })
      assert.deepEqual(
        (await search()).map(({ title }) => title),
        ['Card for Bob', 'Card for Ann'],
      )
      assert.deepEqual(await ids({ text: 'for ann' }), [ann])
      await run()
      assert.deepEqual(await ids({ text: 'for ann' }), [ann], 'also once it has ended')
      assert.deepEqual(await ids({ text: 'CARD' }), [bob, ann])
      assert.deepEqual(await ids({ text: 'card', classType: 'Other' }), [])
    })

    test('are found by what they made: a type, a node, or anything at all', async () => {
      const { tenant, accountId, ids, search, submit, run } = await newTenant()
      const other = await newTenant()
      const make = async (outputs: ReturnType<typeof newOutput>[], isEnded = true) => {
        const id = await submit()
        const lease = await claim(tenant)
        const finish = { status: 'succeeded', from: ['running'], at: at(2000), error: null } as const
        await store().jobs.commit(lease, { outputs, ...(isEnded && { finish }) })
        return id
      }
      const image = await make([newOutput({ type: 'image', nodeId: '7' })])
      await submit()
      const nothing = await run()
      const both = [newOutput({ type: 'image', nodeId: '9' }), newOutput({ type: 'video', nodeId: '8' })]
      const mixed = await make(both)
      const running = await make([newOutput({ type: 'audio', nodeId: '8' })], false)
      const made = (type: 'any' | 'image' | 'video' | 'audio' | 'text', nodeId: string | null = null) =>
        ids({ outputs: { type, nodeId } })
      assert.deepEqual(await made('any'), [running, mixed, image])
      assert.ok(!(await made('any')).includes(nothing))
      assert.deepEqual(await made('image'), [mixed, image])
      assert.deepEqual(await made('video'), [mixed])
      assert.deepEqual(await made('audio'), [running])
      assert.deepEqual(await made('text'), [])
      assert.deepEqual(await made('any', '8'), [running, mixed])
      assert.deepEqual(await made('image', '8'), [], 'one output must be both')
      assert.deepEqual(await ids({ outputs: { type: 'image', nodeId: null }, statuses: ['failed'] }), [])
      assert.deepEqual(await other.ids({ outputs: { type: 'any', nodeId: null } }), [])
      const jobs = await search({ outputs: { type: 'any', nodeId: null } })
      const listed = await store().summaries.findOutputs(accountId, jobs)
      assert.deepEqual(
        [image, mixed, running].map((id) => listed.get(id)?.map(({ type, nodeId }) => [type, nodeId])),
        [[['image', '7']], both.map(({ type, nodeId }) => [type, nodeId]), [['audio', '8']]],
      )
      assert.equal((await store().summaries.findOutputs(other.accountId, jobs)).size, 0)
    })

    test('filters combine', async () => {
      const { ids, submit, run } = await newTenant()
      const first = await submit({ metadata: { scene: '1' } })
      await submit({ metadata: { scene: '2' } })
      await run('out_of_memory')
      await run('out_of_memory')
      await submit({ metadata: { scene: '1' } })
      const filter = { metadata: { scene: '1' }, code: 'out_of_memory', classType: 'KSampler', since: START }
      assert.deepEqual(await ids(filter), [first])
      assert.deepEqual(await ids({ ...filter, statuses: ['succeeded'] }), [])
      assert.deepEqual(await ids({ ...filter, weights: 'sdxl.safetensors' }), [])
    })

    test('pages of both orders hold every job once, whatever the filter', async () => {
      const { accountId, submit, run } = await newTenant()
      const all: string[] = []
      for (let index = 0; index < 23; index += 1)
        all.push(await submit({ createdAt: at(Math.floor(index / 3)), recipe: index % 2 === 0 ? POSTCARD : POSTER }))
      for (let index = 0; index < 9; index += 1) await run(index % 3 === 0 ? 'out_of_memory' : null)
      const filters: Partial<SummaryFilter>[] = [
        {},
        { classType: 'SaveImage' },
        { text: 'safetensors' },
        { classType: 'KSampler' },
      ]
      for (const fields of filters) {
        const filter = { ...NO_FILTER, ...fields }
        const pages = { newest: [] as string[], oldest: [] as string[] }
        for (const order of ['newest', 'oldest'] as const) {
          let after = null
          do {
            const page = await store().summaries.search(accountId, { filter, order, limit: 4, after, now: NOW })
            pages[order].push(...page.summaries.map(({ id }) => id))
            after = page.next
          } while (after !== null)
        }
        assert.deepEqual(pages.newest, pages.oldest.toReversed())
        const expected = fields.classType === 'KSampler' ? all.filter((_, index) => index % 2 === 0) : all
        assert.deepEqual(pages.newest.toSorted(), expected.toSorted())
      }
    })

    test('counts are of the filter, whatever its statuses', async () => {
      const { accountId, submit, run } = await newTenant()
      await submit({ recipe: POSTER })
      for (let index = 0; index < 3; index += 1) await submit()
      await run('out_of_memory')
      await run()
      const none = { queued: 0, running: 0, canceling: 0, succeeded: 0, failed: 0, canceled: 0, expired: 0 }
      const count = (fields: Partial<SummaryFilter>) =>
        store().summaries.count(accountId, { ...NO_FILTER, ...fields }, NOW)
      assert.deepEqual(await count({}), { ...none, queued: 2, succeeded: 1, failed: 1 })
      assert.deepEqual(await count({ statuses: ['failed'] }), { ...none, queued: 2, succeeded: 1, failed: 1 })
      assert.deepEqual(await count({ since: at(2) }), { ...none, queued: 2, succeeded: 1 })
      assert.deepEqual(await count({ classType: 'KSampler' }), { ...none, queued: 2, succeeded: 1 })
      assert.deepEqual(await count({ code: 'out_of_memory' }), { ...none, failed: 1 })
      assert.deepEqual(await count({ classType: 'NoSuchClass' }), none)
    })

    test('that failed for one reason are found and counted: the same code, class and message, whatever its numbers', async () => {
      const { tenant, accountId, search, submit } = await newTenant()
      const fail = async (message: string, code = 'out_of_memory') => {
        const id = await submit()
        const error = { code, message, nodeId: '7', classType: 'K', traceback: null }
        const finish = { status: 'failed', from: ['running'], at: at(2000), error } as const
        await store().jobs.commit(await claim(tenant), { finish })
        return id
      }
      const alike = [await fail('needs 21.5 GiB, 3 are free'), await fail('needs 7 GiB, 0.25 are free')]
      const other = await fail('the tile of 64 is too large')
      await fail('needs 21.5 GiB, 3 are free', 'node_execution_error')
      const [first] = await search({ statuses: ['failed'] })
      assert.ok(first?.error)
      const failure = toFailureSignature({ code: 'out_of_memory', classType: 'K', message: 'needs 1 GiB, 2 are free' })
      const filter = { code: 'out_of_memory', failure }
      const ids = (await search(filter)).map(({ id }) => id)
      assert.deepEqual(ids.toSorted(), alike.toSorted())
      assert.equal(ids.includes(other), false)
      assert.equal((await search({ failure })).length, 2)
      assert.deepEqual(await search({ failure, statuses: ['succeeded'] }), [])
      assert.equal((await store().summaries.count(accountId, { ...NO_FILTER, ...filter }, NOW))?.failed, 2)
    })

    test('are of one account, and gone with the retention of a job', async () => {
      const { tenant, ids, submit, run } = await newTenant()
      const other = await newTenant()
      const mine = await submit({ metadata: { scene: '1' }, expiresAt: at(50_000) })
      const live = await submit({ metadata: { scene: '1' } })
      await run('out_of_memory')
      for (const filter of [
        {},
        { metadata: { scene: '1' } },
        { code: 'out_of_memory' },
        { text: mine },
        { classType: 'KSampler' },
      ]) {
        assert.deepEqual(await other.ids(filter), [])
        assert.ok(!(await ids(filter)).includes(mine), 'past its retention')
      }
      const found = await store().summaries.findMany(tenant.accountId, [mine, live, randomUUID(), 'x'], START)
      assert.deepEqual(found.map(({ id }) => id).toSorted(), [mine, live].toSorted())
      assert.deepEqual(await store().summaries.findMany(other.accountId, [mine, live], START), [])
    })

    test('recipes go once no job can have them', async () => {
      const { ids, submit } = await newTenant()
      await submit({ recipe: recipeOf('Shortlived', ['Gone']), expiresAt: at(DAY_MS) })
      await store().summaries.sweepRecipes(at(2 * DAY_MS), 1000)
      assert.equal((await ids({ classType: 'Gone' })).length, 1)
      await store().summaries.sweepRecipes(at(3 * DAY_MS + 1), 1000)
      assert.deepEqual(await ids({ classType: 'Gone' }), [])
    })

    testSummaryDetails({ store, newTenant })
  })
}

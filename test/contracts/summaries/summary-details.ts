/** What the store tells about single jobs and queues beside the lists: the order of claims, earlier attempts, what is kept of a submit. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type JobOrigin, NO_ORIGIN } from '../../../src/domain/jobs/submit/job-origin.ts'
import { at, LOST } from '../store-under-test.ts'
import { claim, NOW, POSTCARD, POSTER, type SummaryRig } from './summary-rig.ts'

export function testSummaryDetails({ store, newTenant }: SummaryRig): void {
  test('a queue is read in the order of claims, with what runs and what has run', async () => {
    const { tenant, accountId, submit, run } = await newTenant()
    await submit({ recipe: POSTER })
    await run()
    await submit()
    await claim(tenant)
    const later = await submit()
    const first = await submit({ priority: 5, recipe: POSTER })
    const { waiting, held, ended } = await store().summaries.readQueue(accountId, tenant.pool)
    assert.deepEqual(waiting, [
      { id: first, recipe: POSTER.key, priority: 5 },
      { id: later, recipe: POSTCARD.key, priority: 0 },
    ])
    assert.deepEqual(held, [{ recipe: POSTCARD.key, startedAtMs: at(1000).getTime() }])
    assert.deepEqual(
      ended.map(({ seq: _, ...past }) => past),
      [
        {
          ...{ recipe: POSTER.key, priority: 0, createdAtMs: at(1).getTime() },
          ...{ startedAtMs: at(1000).getTime(), completedAtMs: at(2000).getTime() },
        },
      ],
    )
    const none = await store().summaries.readQueue(accountId, 'another')
    assert.deepEqual(none, { waiting: [], held: [], ended: [] })
  })

  test('details tell of attempts that ended before the job, of its terms and of what was held', async () => {
    const { tenant, accountId, submit } = await newTenant()
    const id = await submit()
    const details = () => store().summaries.findDetails(accountId, id, NOW)
    assert.deepEqual((await details())?.attempts, [])
    assert.deepEqual([(await details())?.terms, (await details())?.held], [POSTCARD.terms, null])
    const first = await claim(tenant)
    await store().jobs.release([{ ...first, isSpent: true }], at(3000))
    await claim(tenant)
    await store().jobs.reap({ now: at(40_000), maxAttempts: 3, error: LOST })
    const attempts = (await details())?.attempts ?? []
    assert.deepEqual(
      attempts.map(({ number, engineId, why }) => [number, engineId, why]),
      [
        [1, 'engine', 'engine_lost'],
        [2, 'engine', 'worker_lost'],
      ],
    )
    assert.deepEqual([attempts[0]?.from, attempts[0]?.to], [at(1000), at(3000)])
    const last = await claim(tenant)
    const log = { text: 'x\n', truncated: false, capturedAt: at(5), complete: true, marks: '{"total":1,"marks":[]}' }
    const finish = { status: 'succeeded', from: ['running'], at: at(50_000), error: null } as const
    await store().jobs.commit(last, { log, finish })
    assert.equal((await details())?.attempts.length, 2)
    assert.deepEqual(await store().jobs.findLog(accountId, id, NOW), log)
    const other = await newTenant()
    assert.equal(await store().summaries.findDetails(other.accountId, id, NOW), null)
  })

  test('details keep what is told of the submit, also when the job has ended', async () => {
    const { accountId, submit, run } = await newTenant()
    const input = { name: 'cat.png', hash: 'a'.repeat(64), sizeBytes: 7, contentType: 'image/png' }
    const place = { x: 1, y: 2.5, w: 3, h: 4, title: 'A "title"', color: null }
    const origin: JobOrigin = {
      ...{ idempotencyKey: 'key 1', inputs: [input], areInputsCut: true },
      layout: { nodes: { '1': place }, groups: [] },
      trace: { traceId: '1'.repeat(32), spanId: '2'.repeat(16), isSampled: true, state: 'vendor=1' },
      endpointInputs: '{"seed":18446744073709551615}',
    }
    const [told, silent] = [await submit({ origin }), await submit()]
    const originOf = async (id: string) => (await store().summaries.findDetails(accountId, id, NOW))?.origin
    assert.deepEqual(await originOf(told), origin)
    assert.deepEqual(await originOf(silent), NO_ORIGIN)
    await run()
    assert.deepEqual(await originOf(told), origin)
  })
}

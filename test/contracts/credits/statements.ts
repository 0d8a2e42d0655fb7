/**
 * What every ledger tells of a month. Whatever was granted, held, charged and refunded when, also at the last millisecond of a month and
 * at the first of the next: a statement adds up to the entries of its month, and begins with what the one before ended with.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { EntryKind, LedgerEntry } from '../../../src/domain/credits/ledger.ts'
import { createReadStatement, type Statement } from '../../../src/domain/credits/statement.ts'
import { toStatementCsv } from '../../../src/surfaces/kit/statement-view.ts'
import {
  at,
  DAY_MS,
  START,
  type StoreOpener,
  shareStore,
  Tenant,
  type WholeStoreUnderTest,
} from '../store-under-test.ts'
import { drawStep, play } from './charges.ts'

const MONTHS = ['2025-12', '2026-01', '2026-02', '2026-03', '2026-04', '2026-05']
const EDGES = [0, 31, 59, 90].map((days) => days * DAY_MS)
// Work lasts half a second or two: near an edge, some of it is held in one month and charged in the next.
const moment = fc.oneof(
  fc.integer({ min: 0, max: 100 * DAY_MS }),
  fc
    .tuple(fc.constantFrom(...EDGES), fc.constantFrom(0, -1, 1, -250, -501, -500, -499, -1999, -2001))
    .map(([edge, off]) => Math.max(0, edge + off)),
)
const gift = fc.record({
  afterMs: moment,
  micros: fc.integer({ min: -300_000, max: 900_000 }).filter((micros) => micros !== 0),
})

export function testStatements(opener: StoreOpener<WholeStoreUnderTest>, { runs = 20 } = {}): void {
  describe('statements', () => {
    const store = shareStore(opener)
    const read = (now: Date) => createReadStatement(store().ledger, { now: () => now })

    test(`add up to the ledger and follow one another, after each of ${runs} random ledgers`, async () => {
      const property = fc.asyncProperty(
        fc.array(drawStep(moment), { minLength: 1, maxLength: 14 }),
        fc.array(gift, { maxLength: 4 }),
        async (steps, gifts) => {
          const tenant = await Tenant.metered(store())
          await play(store(), tenant, steps)
          for (const { afterMs, micros } of gifts) {
            const { accountId } = tenant
            await store().ledger.grant({ id: randomUUID(), accountId, micros, at: at(afterMs), memo: '' })
          }
          await checkMonths(store(), tenant)
        },
      )
      await fc.assert(property, { numRuns: runs })
      assert.deepEqual((await store().ledger.check()).faults, [])
    })

    test('tell the dearest lines, and what is in none of them', async () => {
      const tenant = await Tenant.metered(store())
      const usual = { kind: 'call', afterMs: 5000, keyId: null, model: 'fake/one', pick: 0 } as const
      await play(store(), tenant, [usual, usual, { ...usual, model: 'fake/two' }, { ...usual, kind: 'job' }])
      const { accountId, pool } = tenant
      const period = { accountId, from: START, to: at(31 * DAY_MS) }
      const none = { endpoint: null, refunded: 0 }
      const found = await store().ledger.statement({ ...period, limit: 2 })
      assert.deepEqual(found?.lines, [
        { work: 'call', model: 'fake/one', pool: null, ...none, charged: 80_000, count: 2 },
        { work: 'call', model: 'fake/two', pool: null, ...none, charged: 40_000, count: 1 },
      ])
      assert.deepEqual([found?.charged, found?.count], [122_000, 4])
      const all = await store().ledger.statement({ ...period, limit: 3 })
      assert.deepEqual(all?.lines[2], { work: 'job', model: null, pool, ...none, charged: 2000, count: 1 })
    })

    test('of a month are final an hour after its end; of one to come there is none, nor without a balance', async () => {
      const { accountId } = await Tenant.metered(store())
      const end = at(31 * DAY_MS)
      const isFinal = async (now: Date) => (await read(now)(accountId, '2026-01')).isFinal
      assert.deepEqual(
        [
          await isFinal(at(DAY_MS)),
          await isFinal(at(31 * DAY_MS + 3_599_999)),
          await isFinal(at(31 * DAY_MS + 3_600_000)),
        ],
        [false, false, true],
      )
      assert.equal((await read(end)(accountId, null)).month, '2026-02')
      assert.equal((await read(new Date(end.getTime() - 1))(accountId, null)).month, '2026-01')
      const refused = (month: string, refusal: string) => assert.rejects(read(at(1))(accountId, month), { refusal })
      for (const month of ['2026-13', '2026-00', '2026-1', '1999-01', '2026-01-01', 'x', ''])
        await refused(month, 'invalid_request')
      await refused('2026-02', 'not_found')
      const { accountId: unmetered } = await Tenant.create(store())
      await assert.rejects(read(end)(unmetered, null), { refusal: 'not_found' })
    })
  })
}

async function checkMonths(store: WholeStoreUnderTest, { accountId }: Tenant): Promise<void> {
  const entries = await store.ledger.entries(accountId, { limit: 1000, before: null })
  const readStatement = createReadStatement(store.ledger, { now: () => new Date('2026-05-15T00:00:00Z') })
  let before = 0
  for (const month of MONTHS) {
    const statement = await readStatement(accountId, month)
    // Its months are those of the calendar of UTC, by what the entries say of themselves.
    const inside = entries.filter((entry) => entry.at.toISOString().startsWith(month))
    const until = entries.filter((entry) => entry.at < statement.to)
    assert.equal(statement.opening, before)
    checkSums(statement, inside)
    assert.equal(
      statement.closing,
      sum(until, ({ available, held }) => available + held),
    )
    assert.equal(
      statement.held,
      sum(until, ({ held }) => held),
    )
    assert.equal(statement.holds, count(until, 'hold') - count(until, 'settle') - count(until, 'release'))
    checkCsv(statement)
    before = statement.closing
  }
  const balance = await store.ledger.balance(accountId)
  assert.equal(before, (balance?.available ?? 0) + (balance?.held ?? 0))
}

function checkSums(statement: Statement, inside: readonly LedgerEntry[]): void {
  const of = (kind: EntryKind) => inside.filter((entry) => entry.kind === kind)
  assert.equal(statement.granted, 0 - sum(of('grant'), ({ granted }) => granted))
  assert.equal(
    statement.revoked,
    sum(of('revoke'), ({ granted }) => granted),
  )
  assert.equal(
    statement.charged,
    sum(of('settle'), ({ charged }) => charged),
  )
  assert.equal(statement.refunded, 0 - sum(of('refund'), ({ charged }) => charged))
  assert.equal(statement.count, of('settle').length)
  for (const field of ['charged', 'refunded', 'count'] as const)
    assert.equal(
      sum(statement.lines, (line) => line[field]),
      statement[field],
    )
  assert.equal(statement.rest, null)
  const jobs = of('settle').filter(({ reference }) => reference.startsWith('job:'))
  const ofJobs = statement.lines.filter(({ work }) => work === 'job')
  assert.equal(
    sum(ofJobs, ({ charged }) => charged),
    sum(jobs, ({ charged }) => charged),
  )
}

/** Its amounts lead from the first balance to the last, in exact decimals. */
function checkCsv(statement: Statement): void {
  const rows = toStatementCsv(statement).trimEnd().split('\r\n').slice(1)
  const micros = rows.map((row) => {
    const [item = '', ...cells] = row.split(',')
    assert.equal(cells.length, 6, row)
    const [whole = '', fraction = ''] = (cells[5] ?? '').replace('-', '').split('.')
    const amount = Number(whole) * 1_000_000 + Number(fraction.padEnd(6, '0'))
    return { item, amount: cells[5]?.startsWith('-') ? 0 - amount : amount }
  })
  const closing = micros.findIndex(({ item }) => item === 'closing balance')
  assert.equal(
    sum(micros.slice(0, closing), ({ amount }) => amount),
    micros[closing]?.amount,
  )
  assert.equal(micros[0]?.item, 'opening balance')
}

function sum<Each>(all: readonly Each[], of: (each: Each) => number): number {
  return all.reduce((total, each) => total + of(each), 0)
}

function count(entries: readonly LedgerEntry[], kind: EntryKind): number {
  return entries.filter((entry) => entry.kind === kind).length
}

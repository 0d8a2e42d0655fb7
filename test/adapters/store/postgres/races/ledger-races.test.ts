/**
 * Holds, settlements, releases and grants of several processes on the same accounts: money is neither made nor lost, nobody falls
 * below the floor, and every hold is closed once.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { silentLog } from '../../../../../lib/log.ts'
import { type Connections, openConnections } from '../../../../../src/adapters/store/postgres/database/connections.ts'
import { openShared, runOn } from '../../../../../src/adapters/store/postgres/shared-stores.ts'
import { command, postgresOnly } from '../../../../../src/adapters/store/statements/statement.ts'
import {
  type CloseInput,
  closeMany,
  type HoldInput,
  holdMany,
  lockPurses,
} from '../../../../../src/adapters/store/stores/ledger/holds.ts'
import { ledgerStore } from '../../../../../src/adapters/store/stores/ledger/ledger-store.ts'
import { NO_LABELS } from '../../../../../src/domain/credits/charges.ts'
import { createTestDatabase } from '../../../../support/postgres/test-database.ts'
import { seededRandom } from '../../../../support/seeded-random.ts'

const ADD_PURSE = command(
  'test.addPurse',
  postgresOnly('INSERT INTO credit_account (account_id, floor) VALUES (:accountId, :floor)'),
)

const NODES = 3
const AT = new Date(1)

const ledgerOf = (node: Connections) => openShared(ledgerStore, node)
const holdAll = ({ durable }: Connections, inputs: readonly HoldInput[]) =>
  durable.transaction((tx) => runOn(tx, holdMany(inputs)))
const hold = async (node: Connections, input: HoldInput) => (await holdAll(node, [input]))[0]
const close = ({ durable }: Connections, inputs: readonly CloseInput[]) =>
  durable.transaction((tx) => runOn(tx, closeMany(inputs)))
const settle = (holdId: string, micros: number): CloseInput => ({ kind: 'settle', holdId, micros, at: 2, memo: '' })
const release = (holdId: string): CloseInput => ({ kind: 'release', holdId, micros: 0, at: 2, memo: '' })
const FLOOR = -50

/** Three processes' connections to one database, and accounts with credit. */
async function withNodes(
  { accounts, micros }: { readonly accounts: number; readonly micros: number },
  body: (nodes: readonly Connections[], accountIds: readonly string[]) => Promise<void>,
): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const { url } = stack.use(await createTestDatabase())
  const nodes = Array.from({ length: NODES }, () => stack.use(openConnections({ url, log: silentLog })))
  const accountIds = Array.from({ length: accounts }, () => randomUUID())
  for (const accountId of accountIds) {
    await nodes[0].durable.run(ADD_PURSE, { accountId, floor: FLOOR })
    await ledgerOf(nodes[0]).grant({ id: randomUUID(), accountId, micros, at: AT, memo: '' })
  }
  await body(nodes, accountIds)
  const report = await ledgerOf(nodes[0]).check()
  assert.deepEqual(report.faults, [])
}

describe('the ledger under several processes', () => {
  test('holds of several processes never pass the floor', () =>
    withNodes({ accounts: 1, micros: 1000 }, async (nodes, [accountId]) => {
      const holds = Array.from({ length: 60 }, (_, index) => ({
        holdId: `call:${index}`,
        accountId,
        micros: 100,
        at: 1,
        labels: NO_LABELS,
      }))
      const held = await Promise.all(holds.map((input, index) => hold(nodes[index % NODES], input)))
      assert.equal(held.filter(Boolean).length, 10)
      assert.deepEqual(await ledgerOf(nodes[0]).balance(accountId), { available: 0, held: 1000, floor: FLOOR })
    }))

  test('what can be held is still there until the transaction ends', () =>
    withNodes({ accounts: 1, micros: 100 }, async (nodes, [accountId]) => {
      const outcomes = await Promise.all(
        nodes.map(({ durable }) =>
          durable.transaction(async (tx) => {
            const input = { holdId: `call:${randomUUID()}`, accountId, micros: 150, at: 1, labels: NO_LABELS }
            const purses = await runOn(tx, lockPurses([input]))
            if (!purses.canHold(input)) return 'refused'
            const isHeld = purses.hold(input)
            await runOn(tx, purses.write())
            return isHeld
          }),
        ),
      )
      assert.deepEqual(outcomes.map(String).sort(), ['refused', 'refused', 'true'])
    }))

  test('the same hold, taken and closed by every process at once, moves money once', () =>
    withNodes({ accounts: 1, micros: 1000 }, async (nodes, [accountId]) => {
      const input = { holdId: 'call:one', accountId, micros: 300, at: 1, labels: NO_LABELS }
      const each = <Result>(body: (node: Connections, index: number) => Promise<Result>) =>
        Promise.all([...nodes, ...nodes].map(body))
      assert.deepEqual(await each((node) => hold(node, input)), Array(6).fill(true))
      assert.deepEqual(await ledgerOf(nodes[0]).balance(accountId), { available: 700, held: 300, floor: FLOOR })
      const closed = await each((node, index) =>
        close(node, [index % 2 === 0 ? settle('call:one', 200) : release('call:one')]),
      )
      const won = closed.flat().filter((charged) => charged !== null)
      assert.equal(won.length, 1)
      const [charged = 0] = won
      assert.deepEqual(await ledgerOf(nodes[0]).balance(accountId), {
        available: 1000 - charged,
        held: 0,
        floor: FLOOR,
      })
      assert.deepEqual(await hold(nodes[0], input), true, 'a closed hold is not taken anew')
      assert.deepEqual(await ledgerOf(nodes[0]).balance(accountId), {
        available: 1000 - charged,
        held: 0,
        floor: FLOOR,
      })
    }))

  test('a batch holds what can be paid, in its order, and closes some of each', () =>
    withNodes({ accounts: 2, micros: 100 }, async ([node], [first, second]) => {
      const input = (holdId: string, accountId: string, micros: number) => ({
        ...{ holdId, accountId, micros, at: 1 },
        labels: NO_LABELS,
      })
      const held = await holdAll(node, [
        ...[input('a', first, 100), input('b', first, 60), input('c', second, 10), input('d', first, 50)],
        ...[input('a', first, 100), input('e', 'unmetered', 9)],
      ])
      assert.deepEqual(held, [true, false, true, true, true, true])
      // All of it, and nothing beyond the floor.
      const charged = await close(node, [
        ...[settle('d', 80), release('a'), settle('c', 500), settle('e', 5), settle('d', 1)],
      ])
      assert.deepEqual(charged, [50, 0, 150, null, null])
      assert.deepEqual(await ledgerOf(node).balance(first), { available: 50, held: 0, floor: FLOOR })
      assert.deepEqual(await ledgerOf(node).balance(second), { available: FLOOR, held: 0, floor: FLOOR })
    }))

  test('a grant, a revocation and a refund that several processes repeat count once', () =>
    withNodes({ accounts: 2, micros: 100 }, async (nodes, [first, second]) => {
      const each = <Result>(body: (node: Connections, index: number) => Promise<Result>) =>
        Promise.all([...nodes, ...nodes].map(body))
      const granted = await each((node, index) =>
        ledgerOf(node).grant({
          ...{ id: 'the same', at: AT, memo: '' },
          accountId: index % 2 === 0 ? first : second,
          micros: index < 3 ? 7 : -7,
        }),
      )
      assert.deepEqual(granted.map(({ outcome }) => outcome).sort(), ['granted', ...Array(5).fill('repeated')])
      await hold(nodes[0], { holdId: 'h', accountId: first, micros: 50, at: 1, labels: NO_LABELS })
      await close(nodes[0], [settle('h', 40)])
      const refunded = await each((node) => ledgerOf(node).refund({ holdId: 'h', micros: null, at: AT, memo: '' }))
      assert.deepEqual(refunded.map(({ outcome }) => outcome).sort(), ['refunded', ...Array(5).fill('repeated')])
    }))

  test('random moves of three processes on the same accounts add up', () =>
    withNodes({ accounts: 4, micros: 2000 }, async (nodes, accountIds) => {
      const random = seededRandom(20_260_101)
      const open: string[] = []
      const closings = new Map<string, number>()
      let charged = 0
      let granted = 0

      async function step(node: Connections): Promise<void> {
        const choice = random.next()
        if (choice < 0.45) {
          const inputs = Array.from({ length: random.between(1, 5) }, () => ({
            ...{ holdId: `call:${randomUUID()}`, accountId: random.pick(accountIds), at: 1 },
            micros: random.between(0, 400),
            labels: NO_LABELS,
          }))
          const held = await holdAll(node, inputs)
          open.push(...inputs.filter((_, index) => held[index]).map(({ holdId }) => holdId))
        } else if (choice < 0.9) {
          // The same holds may be closed by several at once.
          const holdIds = [...new Set(Array.from({ length: Math.min(3, open.length) }, () => random.pick(open)))]
          const isSettling = choice < 0.7
          const answers = await close(
            node,
            holdIds.map((holdId) => (isSettling ? settle(holdId, random.between(0, 500)) : release(holdId))),
          )
          for (const [index, holdId] of holdIds.entries()) {
            const answer = answers[index]
            if (answer == null) continue
            closings.set(holdId, (closings.get(holdId) ?? 0) + 1)
            charged += answer
          }
        } else {
          const input = {
            id: randomUUID(),
            accountId: random.pick(accountIds),
            micros: random.between(-100, 200),
            at: AT,
            memo: '',
          }
          const { outcome } = await ledgerOf(node).grant(input)
          if (outcome === 'granted') granted += input.micros
        }
      }

      await Promise.all(
        nodes.flatMap((node) =>
          Array.from({ length: 3 }, async () => {
            for (let steps = 0; steps < 60; steps += 1) await step(node)
          }),
        ),
      )
      assert.ok([...closings.values()].every((times) => times === 1))
      const balances = await Promise.all(accountIds.map((accountId) => ledgerOf(nodes[0]).balance(accountId)))
      assert.ok(balances.every((balance) => balance !== null && balance.available >= FLOOR))
      const total = balances.reduce((sum, balance) => sum + (balance?.available ?? 0) + (balance?.held ?? 0), 0)
      assert.equal(total, accountIds.length * 2000 + granted - charged)
    }))
})

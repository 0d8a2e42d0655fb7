/** Batches: what travels together, what waits, and in which order. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createGather } from '../../../../../src/adapters/store/postgres/database/gather.ts'
import { Tenant } from '../../../../contracts/store-under-test.ts'
import { withTwoNodes } from '../temporary-store.ts'

/** A gather whose batches end when they are told to. */
function openGather(options: Partial<Parameters<typeof createGather<string, string>>[0]>) {
  const batches: { readonly items: readonly string[]; end(): void }[] = []
  const ask = createGather<string, string>({
    run: (items) =>
      new Promise((resolve) => {
        batches.push({ items, end: () => resolve(items.map((item) => item.toUpperCase())) })
      }),
    ...{ maxItems: 3, maxRunning: 2 },
    ...options,
  })
  return { ask, batches, items: () => batches.map((batch) => batch.items.join('')) }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

test('what is asked for in one turn travels together, and each gets its own answer', async () => {
  const { ask, batches, items } = openGather({})
  const answers = ['a', 'b', 'c', 'd'].map(ask)
  await turn()
  assert.deepEqual(items(), ['abc', 'd'])
  for (const batch of batches) batch.end()
  assert.deepEqual(await Promise.all(answers), ['A', 'B', 'C', 'D'])
})

test('what is asked for while all batches are under way waits for the next one', async () => {
  const { ask, batches, items } = openGather({ maxRunning: 1 })
  ask('a')
  await turn()
  ask('b')
  ask('c')
  await turn()
  assert.deepEqual(items(), ['a'])
  batches[0].end()
  await turn()
  assert.deepEqual(items(), ['a', 'bc'])
})

test('items of one name never share a batch; items of one lane are never in two at once', async () => {
  const named = openGather({ nameOf: (item) => item })
  for (const item of ['a', 'a', 'b']) named.ask(item)
  await turn()
  assert.deepEqual(named.items(), ['ab', 'a'])

  const laned = openGather({ maxItems: 2, laneOf: (item) => item })
  for (const item of ['a', 'a', 'a', 'b']) laned.ask(item)
  await turn()
  assert.deepEqual(laned.items(), ['aa', 'b'])
  laned.batches[0].end()
  await turn()
  assert.deepEqual(laned.items(), ['aa', 'b', 'a'])
})

test('the figures of a store tell how many operations its largest batch had', () =>
  withTwoNodes(async ({ stores: [store] }) => {
    const tenant = await Tenant.create(store)
    const before = store.stats().write
    await Promise.all(Array.from({ length: 20 }, () => tenant.submit()))
    const { operations, batches, largestBatch } = store.stats().write
    assert.ok(operations - before.operations >= 20, 'each submit is an operation')
    assert.ok(batches - before.batches < 20, 'they share transactions')
    assert.equal(largestBatch, 20)
  }))

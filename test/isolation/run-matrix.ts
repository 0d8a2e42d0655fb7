/** One surface's part of the matrix, as tests. */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { ask, type Comparable, differences, toComparable } from './compare.ts'
import { readOperations } from './contract.ts'
import type { IsolationSurface, Prepared } from './surface.ts'
import type { World } from './world.ts'

export function testIsolation(surface: IsolationSurface, worldOf: () => World): void {
  describe(`isolation of ${surface.name}`, () => {
    let prepared: Prepared
    let listedBefore: Comparable[]
    let ownedBefore: Comparable[]
    before(async () => {
      listedBefore = await readLists(surface, worldOf())
      prepared = await surface.prepare(worldOf())
      ownedBefore = await readOwned(prepared, worldOf())
    })

    test('every operation of the contract has a case', () => {
      const asked = [...prepared.cases, ...surface.lists].map(({ operation }) => operation)
      const covered = new Set([...asked, ...surface.harmless])
      const operations = surface.spec === null ? [] : readOperations(surface.spec)
      assert.deepEqual(
        operations.filter(({ id }) => !covered.has(id)),
        [],
      )
    })

    test('lists show what they showed before somebody else had anything', async () => {
      assert.deepEqual(changed(await readLists(surface, worldOf()), listedBefore), [])
    })

    test('somebody else’s things look exactly like things that never existed', async () => {
      assert.ok(prepared.cases.length > 0)
      const differing: object[] = []
      for (const { title, ...each } of prepared.cases) {
        const said = differences(each.foreign, each.unknown)
        const foreign = toComparable(await ask(worldOf(), surface, each.foreign), said)
        const unknown = toComparable(await ask(worldOf(), surface, each.unknown), said)
        if (JSON.stringify(foreign) !== JSON.stringify(unknown)) differing.push({ case: title, foreign, unknown })
      }
      assert.deepEqual(differing, [])
    })

    test('what was asked for by a stranger has changed nothing', async () => {
      assert.deepEqual(changed(await readOwned(prepared, worldOf()), ownedBefore), [])
    })
  })
}

function changed(after: readonly Comparable[], before: readonly Comparable[]): object[] {
  return after.flatMap((now, index) =>
    JSON.stringify(now) === JSON.stringify(before[index]) ? [] : [{ before: before[index], now }],
  )
}

async function readLists(surface: IsolationSurface, world: World): Promise<Comparable[]> {
  const shown: Comparable[] = []
  for (const { path } of surface.lists) {
    shown.push(toComparable(await ask(world, surface, { method: 'GET', path }), []))
  }
  return shown
}

async function readOwned({ owned }: Prepared, { other }: World): Promise<Comparable[]> {
  const shown: Comparable[] = []
  for (const path of owned) shown.push(toComparable(await other.call(path), []))
  return shown
}

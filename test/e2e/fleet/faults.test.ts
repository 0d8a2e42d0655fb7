/**
 * Every fault of the field through the whole service (the API, the store, the fleet), at each point of a run's life. The job ends
 * as the table says, and by the bounds that it names; every attempt was executed once; what succeeded can be read, byte for
 * byte. Nothing is left out: where a fault cannot strike, it is turned on all the same.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { noFaults } from '../../support/engines/fake-comfyui/faults.ts'
import { sumOf, switchesOf, toDocLine, toDocReasons } from '../../support/engines/fleet-faults/row.ts'
import { testRows } from '../../support/engines/fleet-faults/run-row.ts'
import { FAULT_TABLE } from '../../support/engines/fleet-faults/table.ts'

testRows('the fault matrix through the service', FAULT_TABLE)

test('every switch of the fake server stands in the table', () => {
  const turned = new Set(FAULT_TABLE.flatMap(switchesOf))
  assert.deepEqual(
    Object.keys(noFaults()).filter((name) => !turned.has(name)),
    [],
  )
})

test('what a dead server ran is promised to run elsewhere within the lease and five seconds', () => {
  const LEASE_MS = 30_000
  const late = FAULT_TABLE.filter(({ isDeath, within }) => isDeath && sumOf(within) > LEASE_MS + 5_000)
  assert.deepEqual(late, [])
})

test('docs/fleet.md tells the ending and the bound of each', () => {
  const docs = readFileSync(new URL('../../../docs/fleet.md', import.meta.url), 'utf8').replaceAll(/ +\|/g, ' |')
  const missing = [...FAULT_TABLE.map(toDocLine), ...toDocReasons(FAULT_TABLE)].filter((line) => !docs.includes(line))
  assert.deepEqual(missing, [])
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { beginOfDay, type DateOf, openZone, toDayEdges } from './zoned-days.ts'

const zone = (name: string): DateOf => {
  const dateOf = openZone(name)
  assert.ok(dateOf !== null, name)
  return dateOf
}
const begin = (date: string, name: string) => beginOfDay(date, zone(name)).toISOString()

test('a day begins where the local date changes', () => {
  assert.equal(begin('2026-11-16', 'UTC'), '2026-11-16T00:00:00.000Z')
  assert.equal(begin('2026-11-16', 'Europe/Vienna'), '2026-11-15T23:00:00.000Z')
  assert.equal(begin('2026-07-01', 'Europe/Vienna'), '2026-06-30T22:00:00.000Z')
  assert.equal(begin('2026-11-16', 'Asia/Kathmandu'), '2026-11-15T18:15:00.000Z')
  assert.equal(begin('2026-11-16', 'Pacific/Kiritimati'), '2026-11-15T10:00:00.000Z')
  // The clocks went from 23:59:59 to 01:00:00.
  assert.equal(begin('2018-11-04', 'America/Sao_Paulo'), '2018-11-04T03:00:00.000Z')
})

test('days that have 23 or 25 hours, and one that was left out', () => {
  const hours = (from: string, to: string, name: string) => {
    const edges = toDayEdges(beginOfDay(from, zone(name)), beginOfDay(to, zone(name)), zone(name))
    return edges.slice(1).map((edge, index) => (edge.getTime() - (edges[index]?.getTime() ?? 0)) / 3_600_000)
  }
  assert.deepEqual(hours('2026-03-28', '2026-03-31', 'Europe/Vienna'), [24, 23, 24])
  assert.deepEqual(hours('2026-10-24', '2026-10-27', 'Europe/Vienna'), [24, 25, 24])
  // Samoa went from the 29th to the 31st of December 2011.
  assert.deepEqual(hours('2011-12-29', '2012-01-01', 'Pacific/Apia'), [24, 24])
})

test('what begins in the middle of a day is cut there', () => {
  const [from, to] = [new Date('2026-01-01T10:00:00Z'), new Date('2026-01-02T11:00:00Z')]
  const edges = toDayEdges(from, to, zone('UTC')).map((edge) => edge.toISOString())
  assert.deepEqual(edges, [from.toISOString(), '2026-01-02T00:00:00.000Z', to.toISOString()])
  assert.equal(openZone('Nowhere/City'), null)
})

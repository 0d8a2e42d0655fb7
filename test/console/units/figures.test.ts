import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toGrid, toWindow } from '../../../console/src/components/table/virtual-rows.ts'
import { jobsPrice } from '../../../console/src/form/batch.ts'
import { engineWords } from '../../../console/src/text/format.ts'

test('of ten thousand rows only those on the screen and a few around them exist', () => {
  const view = { height: 900, rowHeight: 64, rows: 10_000, overscan: 3 }
  assert.deepEqual(toWindow({ ...view, scrollTop: 0 }), { first: 0, last: 18, offset: 0 })
  assert.deepEqual(toWindow({ ...view, scrollTop: 64_000 }), { first: 997, last: 1018, offset: 997 * 64 })
  assert.deepEqual(toWindow({ ...view, scrollTop: 640_000 }), { first: 9997, last: 10_000, offset: 9997 * 64 })
  assert.deepEqual(toWindow({ ...view, rows: 0, scrollTop: 500 }), { first: 0, last: 0, offset: 0 })
})

test('tiles fill the width, three in a row on a phone', () => {
  const look = { least: 168, gap: 12, lineHeight: 28 }
  assert.deepEqual(toGrid({ ...look, width: 336 }), { columns: 3, rowHeight: 104 + 28 + 12 })
  assert.equal(toGrid({ ...look, width: 1180 }).columns, 6)
})

test('Home says first what is wrong with the engines', () => {
  const none = { ready: 0, busy: 0, starting: 0, away: 0, running: 0, slots: 0 }
  const words = (figures: Partial<typeof none>) => {
    const { colour, text } = engineWords({ ...none, ...figures })
    return `${colour}: ${text}`
  }
  assert.equal(words({}), 'failed: no engine: jobs wait until there is one')
  assert.equal(words({ away: 2 }), 'failed: no engine takes jobs: 2 away')
  assert.equal(words({ starting: 1 }), 'running: no engine takes jobs yet: 1 starting')
  assert.equal(
    words({ ready: 1, busy: 1, away: 1, running: 3, slots: 4 }),
    'canceling: 2 engines at work, 1 away · 3 of 4 slots in use',
  )
  assert.equal(words({ ready: 1, slots: 1 }), 'succeeded: 1 engine at work · 0 of 1 slot in use')
})

test('many jobs set aside many times what one does', () => {
  const price = { per_second_usd: '0.0005', minimum_usd: '0', hold_usd: '0.03' }
  assert.equal(jobsPrice(price, 12), '$0.0005 a second, $0.36 set aside')
  assert.equal(jobsPrice(null, 12), '')
})

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { killAndCheckAdoption } from './adoption-kills.ts'

describe('servers compute every job once, however often the service is killed', () => {
  test('on SQLite', async () => {
    const { jobs, begun, adopted } = await killAndCheckAdoption({
      ...{ store: 'sqlite', processes: 1, kills: 6, terms: 2, upMs: 1500 },
    })
    assert.equal(begun, jobs)
    assert.ok(adopted > 0)
  })
})

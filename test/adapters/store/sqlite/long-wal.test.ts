/** The WAL does not grow for ever. */
import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { withSqlite } from './temporary-store.ts'

const ROUNDS = 100

test('under steady load the WAL is copied into the database and starts over while writes go on', () =>
  withSqlite({}, async (store, directory) => {
    const value = 'x'.repeat(60_000)
    let written = 0
    let longest = 0
    // About 1.2 MB a round: together seven times what the WAL may hold before a checkpoint.
    for (let round = 0; round < ROUNDS; round += 1) {
      await Promise.all(Array.from({ length: 20 }, (_, index) => store.changeMeta(`${round}-${index}`, () => value)))
      longest = Math.max(longest, statSync(join(directory, 'atelier.db-wal')).size)
      written += 20 * value.length
    }
    assert.ok(longest < written / 2, `the WAL grew to ${longest} of ${written} bytes`)
    assert.equal(await store.checkIntegrity(), 'ok')
    assert.equal(await store.readMeta(`${ROUNDS - 1}-19`), value)
  }))

/** The log does not grow for ever, and moving it stops nobody. */
import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { withSqlite } from './temporary-store.ts'

const ROUNDS = 200

test('under steady load the log is moved into the database and begun anew while writes go on', () =>
  withSqlite({}, async (store, directory) => {
    const value = 'x'.repeat(60_000)
    const sizes: number[] = []
    // About 1.2 MB a round: in all seven times what the log may hold before it is moved.
    for (let round = 0; round < ROUNDS; round++) {
      await Promise.all(Array.from({ length: 20 }, (_, index) => store.writeMeta(`${round}-${index}`, value)))
      sizes.push(statSync(join(directory, 'atelier.db-wal')).size)
    }
    const written = ROUNDS * 20 * value.length
    assert.ok(Math.max(...sizes) < written / 2, `the log grew to ${Math.max(...sizes)} of ${written} bytes`)
    assert.equal(await store.checkIntegrity(), 'ok')
    assert.equal(await store.readMeta(`${ROUNDS - 1}-19`), value)
  }))

/** The log does not grow for ever, and moving it stops nobody. */
import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openWriter } from '../../../../src/adapters/store/sqlite/database/sqlite-connections.ts'
import { createLogMover } from '../../../../src/adapters/store/sqlite/threads/wal-checkpointer.ts'
import { createLogLength } from '../../../../src/adapters/store/sqlite/threads/wal-length.ts'
import { withDirectory, withSqlite } from './temporary-store.ts'

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

test(
  'the writer asks when the log is long, another thread moves it, and the next write begins it anew',
  { timeout: 30_000 },
  () =>
    withDirectory(async (directory) => {
      const path = join(directory, 'log.db')
      const database = openWriter(path, { synchronous: 'NORMAL', maxPages: null })
      database.exec('CREATE TABLE page (bytes BLOB)')
      const insert = database.prepare('INSERT INTO page VALUES (zeroblob(400000))')
      const look = database.prepare('PRAGMA wal_checkpoint(NOOP)')
      const measure = () => look.get() as { log: number; checkpointed: number }
      const length = createLogLength(database)
      const troubles: Error[] = []
      const mover = createLogMover(path, (error) => troubles.push(error))
      try {
        do insert.run()
        while (!length.tidy())
        const { log: longest } = measure()
        assert.ok(longest > 4_096)
        // Asked again and again, as the writer does: while it is busy it does not listen.
        while (measure().checkpointed < longest && troubles.length === 0) {
          mover.ask()
          await new Promise(setImmediate)
        }
        assert.deepEqual(troubles, [])
        insert.run()
        assert.ok(measure().log < longest / 4, `${measure().log} pages of ${longest} are left in the log`)
      } finally {
        await mover.close()
        database.close()
      }
    }),
)

/** The WAL does not grow for ever, and its checkpoints stop nobody. */
import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openWriter } from '../../../../src/adapters/store/sqlite/database/sqlite-connections.ts'
import { createWalCheckpointer } from '../../../../src/adapters/store/sqlite/threads/wal-checkpointer.ts'
import { createWalLength } from '../../../../src/adapters/store/sqlite/threads/wal-length.ts'
import { withDirectory, withSqlite } from './temporary-store.ts'

const ROUNDS = 200

test('under steady load the WAL is copied into the database and starts over while writes go on', () =>
  withSqlite({}, async (store, directory) => {
    const value = 'x'.repeat(60_000)
    const sizes: number[] = []
    // About 1.2 MB a round: in all seven times what the WAL may hold before a checkpoint.
    for (let round = 0; round < ROUNDS; round++) {
      await Promise.all(Array.from({ length: 20 }, (_, index) => store.writeMeta(`${round}-${index}`, value)))
      sizes.push(statSync(join(directory, 'atelier.db-wal')).size)
    }
    const written = ROUNDS * 20 * value.length
    assert.ok(Math.max(...sizes) < written / 2, `the WAL grew to ${Math.max(...sizes)} of ${written} bytes`)
    assert.equal(await store.checkIntegrity(), 'ok')
    assert.equal(await store.readMeta(`${ROUNDS - 1}-19`), value)
  }))

test('the writer asks when the WAL is long, another thread copies it, and the next write starts it over', () =>
  withDirectory(async (directory) => {
    const path = join(directory, 'pages.db')
    const database = openWriter(path, { synchronous: 'NORMAL', maxPages: null })
    database.exec('CREATE TABLE page (bytes BLOB)')
    const insert = database.prepare('INSERT INTO page VALUES (zeroblob(400000))')
    const look = database.prepare('PRAGMA wal_checkpoint(NOOP)')
    const measure = () => look.get() as { log: number; checkpointed: number }
    const wal = createWalLength(database)
    const failures: Error[] = []
    const checkpointer = createWalCheckpointer(path, (error) => failures.push(error))
    try {
      do insert.run()
      while (!wal.limit())
      const { log: longest } = measure()
      assert.ok(longest > 4_096)
      // Asked again and again, as the writer does: a request during a checkpoint is not remembered.
      while (measure().checkpointed < longest && failures.length === 0) {
        checkpointer.request()
        await new Promise(setImmediate)
      }
      assert.deepEqual(failures, [])
      insert.run()
      assert.ok(measure().log < longest / 4, `${measure().log} pages of ${longest} are left in the WAL`)
    } finally {
      await checkpointer.close()
      database.close()
    }
  }))

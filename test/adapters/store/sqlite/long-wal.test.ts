/** The WAL does not grow for ever, and its checkpoints stop nobody. */
import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openWriter } from '../../../../src/adapters/store/sqlite/database/sqlite-connections.ts'
import { createWalCheckpointer } from '../../../../src/adapters/store/sqlite/threads/wal-checkpointer.ts'
import { createWalLength } from '../../../../src/adapters/store/sqlite/threads/wal-length.ts'
import { withDirectory, withSqlite } from './temporary-store.ts'

const FEWEST_ROUNDS = 200
const MOST_ROUNDS = 1000

test('under steady load the WAL is copied into the database and starts over while writes go on', () =>
  withSqlite({}, async (store, directory) => {
    const value = 'x'.repeat(60_000)
    let written = 0
    let longest = 0
    let round = 0
    // About 1.2 MB a round, at first seven times what the WAL may hold before a checkpoint. Where the thread that copies it gets
    // little of the processor, the WAL becomes longer: then more is written, until it must have started over.
    while (round < FEWEST_ROUNDS || (written < 2 * longest && round < MOST_ROUNDS)) {
      await Promise.all(Array.from({ length: 20 }, (_, index) => store.changeMeta(`${round}-${index}`, () => value)))
      longest = Math.max(longest, statSync(join(directory, 'atelier.db-wal')).size)
      written += 20 * value.length
      round += 1
    }
    assert.ok(longest < written / 2, `the WAL grew to ${longest} of ${written} bytes`)
    assert.equal(await store.checkIntegrity(), 'ok')
    assert.equal(await store.readMeta(`${round - 1}-19`), value)
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

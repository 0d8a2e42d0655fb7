/** Nobody hears of a commit before it is on disk, whoever brings it there, and the log does not grow for ever. */
import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Channel, openChannel } from '../../../../src/adapters/store/sqlite/threads/channel.ts'
import { LogWatch } from '../../../../src/adapters/store/sqlite/threads/log-watch.ts'
import { isAtLeast, WORD } from '../../../../src/adapters/store/sqlite/threads/log-words.ts'
import { withSqlite } from './temporary-store.ts'

const ROUNDS = 200

type Ops = { readonly commit: (ticket: number | null) => number | null }

async function withUnsyncedThread(check: (channel: Channel<Ops>, log: LogWatch) => Promise<void>): Promise<void> {
  const log = new LogWatch('unused')
  const script = new URL('./unsynced-thread.ts', import.meta.url)
  const channel = await openChannel<Ops>({ name: 'writer', script, workerData: null, maxPending: 10, log })
  try {
    await check(channel, log)
  } finally {
    await channel.close()
  }
}

/** The thread answers in order: once a later answer is here that waits for nothing, an earlier one has come too. */
async function untilAnswered(channel: Channel<Ops>): Promise<void> {
  // What was asked before has left as a batch of its own by then.
  await new Promise(setImmediate)
  await channel.call('commit', null)
}

test('an answer waits until its ticket is on disk, and later ones that need no disk pass it', () =>
  withUnsyncedThread(async (channel, log) => {
    const settled: number[] = []
    const first = channel.call('commit', 1).then(() => settled.push(1))
    await untilAnswered(channel)
    const second = channel.call('commit', 2).then(() => settled.push(2))
    await untilAnswered(channel)
    assert.deepEqual(settled, [])
    Atomics.store(log.words, WORD.syncedByKeeper, 1)
    log.tellSynced()
    await first
    assert.deepEqual(settled, [1])
    Atomics.store(log.words, WORD.syncedByWriter, 2)
    log.tellSynced()
    await second
    assert.deepEqual(settled, [1, 2])
  }))

test('closing waits for answers that are not on disk yet', () =>
  withUnsyncedThread(async (channel, log) => {
    const asked = channel.call('commit', 1)
    await untilAnswered(channel)
    let isDrained = false
    const drained = channel.drain().then(() => {
      isDrained = true
    })
    await new Promise(setImmediate)
    assert.equal(isDrained, false)
    Atomics.store(log.words, WORD.syncedByKeeper, 1)
    log.tellSynced()
    await Promise.all([asked, drained])
  }))

test('tickets go on behind the largest number', () => {
  assert.ok(isAtLeast(5, 5))
  assert.ok(isAtLeast(6, 5))
  assert.ok(!isAtLeast(5, 6))
  assert.ok(isAtLeast(-2_147_483_648, 2_147_483_647))
  assert.ok(!isAtLeast(2_147_483_647, -2_147_483_648))
})

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

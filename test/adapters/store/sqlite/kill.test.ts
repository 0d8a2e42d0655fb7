/** A process can be killed at any instant: what it acknowledged is there, whole, and the directory is free at once. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { after, before, test } from 'node:test'
import { openSqliteStore, type SqliteStore } from '../../../../src/adapters/store/sqlite/open-sqlite-store.ts'
import { StoreOpenError } from '../../../../src/domain/store.ts'
import { LOST } from '../../../contracts/store-under-test.ts'
import { type BuiltChild, buildChild } from '../../../support/app/built-child.ts'
import { withDirectory } from './temporary-store.ts'

let built: BuiltChild
before(async () => {
  built = await buildChild(new URL('./write-load.ts', import.meta.url))
})
after(() => built[Symbol.dispose]())

function startChild(directory: string, mode: 'hold' | 'write'): { child: ChildProcess; lines: AsyncIterator<string> } {
  const child = spawn(process.execPath, [built.program, directory, mode], { stdio: ['ignore', 'pipe', 'inherit'] })
  assert.ok(child.stdout !== null)
  return { child, lines: createInterface({ input: child.stdout })[Symbol.asyncIterator]() }
}

async function killChild(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}

/** Kills the writer once it has said so many lines and returns all that it said until it died. */
async function writeAndKill(directory: string, lineCount: number): Promise<string[][]> {
  const { child, lines } = startChild(directory, 'write')
  const said: string[] = []
  for (let line = await lines.next(); !line.done; line = await lines.next()) {
    said.push(line.value)
    if (said.length === lineCount) await killChild(child)
  }
  assert.equal(said[0], 'ready')
  return said.map((line) => line.split(' '))
}

async function checkOne(store: SqliteStore, [what, id, second]: readonly string[]): Promise<void> {
  const now = new Date()
  if (what === 'asset') {
    assert.ok(await store.assets.find('local', id, now), `asset ${id} is lost`)
    return
  }
  const job = await store.jobs.find('local', id, now)
  assert.ok(job, `job ${id} is lost`)
  if (what === 'job') {
    assert.deepEqual(await store.keys.findKey('local', second, now), { jobId: id, assetId: null })
    return
  }
  assert.equal(job.status, 'succeeded')
  assert.ok(job.outputs.some(({ assetId }) => assetId === second))
  assert.ok(await store.assets.find('local', second, now), `output ${second} is lost`)
}

async function checkAcknowledged(store: SqliteStore, said: readonly string[][]): Promise<void> {
  await Promise.all(said.map((words) => checkOne(store, words)))
}

test('ten kills in the middle of writing lose nothing that was acknowledged', () =>
  withDirectory(async (directory) => {
    const all: string[][] = []
    for (const lineCount of [1, 2, 30, 100, 250, 400, 600, 900, 150, 7]) {
      // The last line may be cut off by the kill; a whole one is an acknowledgement.
      const said = (await writeAndKill(directory, lineCount)).filter((words) => isWhole(words))
      all.push(...said)
      await using store = await openSqliteStore({ directory })
      assert.equal(await store.checkIntegrity(), 'ok')
      assert.equal(await store.accounts.repairCounters(), 0)
      await checkAcknowledged(store, said)
      const lapsedBefore = new Date(Date.now() + 1e9)
      await store.jobs.reap({ now: new Date(), lapsedBefore, maxAttempts: 3, error: LOST })
    }
    await using store = await openSqliteStore({ directory })
    await checkAcknowledged(store, all)
    assert.ok(all.length > 1500)
  }))

function isWhole([what, ...ids]: readonly string[]): boolean {
  const expected = what === 'asset' ? 1 : 2
  return ids.length === expected && ids.every((id) => id.length === 36)
}

test('a second process is refused with the directory and the holder, until the holder is gone', () =>
  withDirectory(async (directory) => {
    const { child, lines } = startChild(directory, 'hold')
    await lines.next()
    await assert.rejects(openSqliteStore({ directory }), (error) => {
      assert.ok(error instanceof StoreOpenError && error.reason === 'locked')
      assert.ok(error.message.includes(directory))
      assert.ok(error.message.includes(`process ${child.pid}`))
      return true
    })
    await killChild(child)
    await using _store = await openSqliteStore({ directory })
    await assert.rejects(openSqliteStore({ directory }), new RegExp(`in use by process ${process.pid}`))
  }))

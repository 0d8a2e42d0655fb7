import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { openBlake3 } from '../../../lib/files/blake3.ts'
import { silentLog } from '../../../lib/log.ts'
import { openFsBlobs } from '../../../src/adapters/blobs/fs/fs-blobs.ts'
import { keepSmallOutputs, SMALL_OUTPUT_BYTES } from '../../../src/adapters/blobs/small-outputs.ts'
import { openSqliteStore } from '../../../src/adapters/store/sqlite/open-sqlite-store.ts'
import type { BlobStore } from '../../../src/domain/assets/blob-store.ts'
import {
  inChunks,
  listAll,
  patterned,
  put,
  readAll,
  refusedWith,
  testBlobStore,
} from '../../contracts/assets/blob-store.ts'

const blake3 = await openBlake3()
const UNLIMITED = { maxBytes: Number.MAX_SAFE_INTEGER }

async function openStore({ maxPages = null }: { readonly maxPages?: number | null } = {}) {
  const directory = await mkdtemp(join(tmpdir(), 'atelier-small-'))
  const store = await openSqliteStore({ directory, maxPages })
  const { smallBytes: small } = store
  if (small === null) throw new Error('SQLite keeps small bytes')
  const files = await openFsBlobs({ directory: join(directory, 'blobs'), blake3, log: silentLog })
  const blobs = keepSmallOutputs(files, { small, blake3, log: silentLog })
  return {
    ...{ directory, files, blobs, outputs: asOutputs(blobs), small, hash: blake3.hash },
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]()
      await rm(directory, { recursive: true })
    },
  }
}

/** Everything that comes is an output. */
function asOutputs<Store extends BlobStore>(blobs: Store): Store {
  return { ...blobs, receive: (source, options) => blobs.receive(source, { ...options, isOutput: true }) }
}

async function countFiles(directory: string): Promise<number> {
  const entries = await readdir(join(directory, 'blobs'), { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).length
}

testBlobStore('small outputs', async () => {
  const store = await openStore()
  return { ...store, blobs: store.outputs }
})

test('an output of few bytes makes no file, and one byte more does', async () => {
  await using store = await openStore()
  const few = await put(store.outputs, patterned(SMALL_OUTPUT_BYTES))
  assert.equal(await countFiles(store.directory), 0)
  assert.equal(store.blobs.localPath(few), null)
  assert.deepEqual(
    await readAll(await store.blobs.open(few, { start: 5, end: 9 })),
    patterned(SMALL_OUTPUT_BYTES).subarray(5, 10),
  )
  const more = await put(store.outputs, patterned(SMALL_OUTPUT_BYTES + 1), 1000)
  assert.equal(await countFiles(store.directory), 1)
  assert.equal(store.blobs.localPath(more), store.files.localPath(more))
  assert.deepEqual(await listAll(store.blobs), [few, more].sort())
})

test('an upload is a file, however small it is', async () => {
  await using store = await openStore()
  const hash = await put(store.blobs, patterned(10))
  assert.equal(await countFiles(store.directory), 1)
  assert.equal(await store.small.find(hash), null)
})

test('bytes that were uploaded and made are removed from both places', async () => {
  await using store = await openStore()
  const hash = await put(store.outputs, patterned(10))
  assert.equal(await put(store.blobs, patterned(10)), hash)
  await store.blobs.remove(hash, async () => true)
  assert.deepEqual(await readAll(await store.blobs.open(hash)), patterned(10))
  assert.notEqual(await store.small.find(hash), null)
  await store.blobs.remove(hash, async () => false)
  assert.equal(await store.blobs.stat(hash), null)
  assert.equal(await store.small.find(hash), null)
  await assert.rejects(store.blobs.open(hash), refusedWith('output_unavailable'))
})

test('bytes that changed in the database are never handed out, and the same output mends them', async () => {
  await using store = await openStore()
  const hash = await put(store.outputs, patterned(10))
  using database = new DatabaseSync(join(store.directory, 'atelier.db'))
  const damage = () => database.prepare(`UPDATE small_bytes SET bytes = x'00' WHERE hash = ?`).run(hash)
  damage()
  await assert.rejects(store.blobs.open(hash), refusedWith('output_unavailable'))
  assert.equal(await store.blobs.stat(hash), null)
  await put(store.outputs, patterned(10))
  damage()
  await put(store.outputs, patterned(10))
  assert.deepEqual(await readAll(await store.blobs.open(hash)), patterned(10))
})

test('a full database refuses an output as a full disk does', async () => {
  await using store = await openStore({ maxPages: 260 })
  const fill = async () => {
    for (let seed = 1; seed < 1000; seed++) {
      const pending = await store.outputs.receive(inChunks(patterned(SMALL_OUTPUT_BYTES, seed), 4096), UNLIMITED)
      await pending.keep()
    }
  }
  await assert.rejects(fill(), refusedWith('storage_full'))
})

test('a source that is given up while it is silent ends the receive', async () => {
  await using store = await openStore()
  const ending = new AbortController()
  const { promise: isAsked, resolve: ask } = Promise.withResolvers<void>()
  async function* source() {
    yield patterned(5)
    ask()
    await new Promise(() => {})
  }
  const receiving = store.outputs.receive(source(), { ...UNLIMITED, signal: ending.signal })
  await isAsked
  ending.abort(new Error('given up'))
  await assert.rejects(receiving, /given up/)
})

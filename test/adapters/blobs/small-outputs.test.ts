import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { openBlake3 } from '../../../lib/files/blake3.ts'
import { silentLog } from '../../../lib/log.ts'
import { openFsBlobs } from '../../../src/adapters/blobs/fs/fs-blobs.ts'
import { openModelFiles } from '../../../src/adapters/blobs/fs/model-files.ts'
import { keepSmallOutputs, SMALL_OUTPUT_BYTES } from '../../../src/adapters/blobs/small-outputs.ts'
import { openSqliteStore } from '../../../src/adapters/store/sqlite/open-sqlite-store.ts'
import type { BlobStore } from '../../../src/domain/assets/blob-store.ts'
import type { SmallBytes } from '../../../src/domain/assets/small-bytes.ts'
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
  const blobs = keepSmallOutputs(files, { small, temporaryDirectory: files.temporaryDirectory, blake3, log: silentLog })
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

/** 12,032 bytes of which no part occurs twice. */
function toUniqueText(index: number): Buffer {
  return Buffer.from(Array.from({ length: 188 }, (_, at) => blake3.hash(Buffer.from(`${index} ${at}`))).join(''))
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

test('several jobs that make the same bytes at once write them once', async () => {
  await using store = await openStore()
  let puts = 0
  const small: SmallBytes = {
    ...store.small,
    put(hash, bytes) {
      puts += 1
      return store.small.put(hash, bytes)
    },
  }
  const { files } = store
  const { temporaryDirectory } = files
  const blobs = asOutputs(keepSmallOutputs(files, { small, temporaryDirectory, blake3, log: silentLog }))
  const pending = await Promise.all([1, 2, 3].map(() => blobs.receive(inChunks(patterned(10), 10), UNLIMITED)))
  await Promise.all(pending.map((each) => each.keep()))
  assert.equal(puts, 1)
  await put(blobs, patterned(10))
  assert.equal(puts, 2)
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

test('a damaged file of the same bytes is replaced by the next output, and a row beside it is read meanwhile', async () => {
  await using store = await openStore()
  const hash = await put(store.blobs, patterned(10))
  const path = store.files.localPath(hash) ?? assert.fail()
  await writeFile(path, patterned(3))
  await put(store.outputs, patterned(10))
  assert.deepEqual(await store.blobs.stat(hash), { sizeBytes: 10 })
  assert.deepEqual(await readFile(path), patterned(10))
  assert.equal(await store.small.find(hash), null)
  await store.small.put(hash, patterned(10))
  await writeFile(path, patterned(10, 7))
  assert.deepEqual(await readAll(await store.blobs.open(hash)), patterned(10))
})

test('an engine gets a small output as a file, which goes when it is given back', async () => {
  await using store = await openStore()
  const hash = await put(store.outputs, patterned(10))
  const { borrow } = store.blobs
  if (borrow === undefined) assert.fail()
  const borrowed = await borrow(hash)
  assert.deepEqual(await readFile(borrowed.path), patterned(10))
  await borrowed[Symbol.asyncDispose]()
  assert.equal(await countFiles(store.directory), 0)
  const uploaded = await put(store.blobs, patterned(11))
  {
    await using there = await borrow(uploaded)
    assert.equal(there.path, store.files.localPath(uploaded))
  }
  assert.equal(await countFiles(store.directory), 1)
  await assert.rejects(borrow(blake3.hash(patterned(12))), refusedWith('output_unavailable'))
})

test('a model that is placed from a small output is a copy of it, read-only, and never replaces another', async () => {
  await using store = await openStore()
  const modelsDirectory = join(store.directory, 'models')
  await mkdir(modelsDirectory)
  const models = await openModelFiles({ modelsDirectory, blobs: store.blobs, blake3 })
  const hash = await put(store.outputs, patterned(10))
  const model = { root: 'loras', name: 'small.safetensors' } as const
  const bytes = { hash, sizeBytes: 10 }
  assert.equal(await models.place(model, bytes), 'placed')
  const path = join(modelsDirectory, 'loras', 'small.safetensors')
  assert.deepEqual(await readFile(path), patterned(10))
  assert.equal((await stat(path)).mode & 0o777, 0o444)
  assert.equal(await models.place(model, bytes), 'same')
  const other = await put(store.outputs, patterned(11))
  assert.equal(await models.place(model, { hash: other, sizeBytes: 11 }), 'taken')
  assert.deepEqual(await readdir(join(modelsDirectory, 'loras')), ['small.safetensors'])
})

test('nothing of a removed output stays in the database file', async () => {
  await using store = await openStore()
  const secret = Buffer.from('a text that was removed '.repeat(500))
  const hash = await put(store.outputs, secret)
  await store.blobs.remove(hash, async () => false)
  using database = new DatabaseSync(join(store.directory, 'atelier.db'))
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  const file = await readFile(join(store.directory, 'atelier.db'))
  assert.equal(file.includes('a text that was removed'), false)
})

test('of a damaged table all outputs are saved that can be read, and the service goes on', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'atelier-salvage-'))
  try {
    const texts = Array.from({ length: 40 }, (_, index) => toUniqueText(index))
    {
      await using store = await openSqliteStore({ directory })
      for (const text of texts) await store.smallBytes?.put(blake3.hash(text), text)
    }
    const path = join(directory, 'atelier.db')
    const file = await readFile(path)
    // A page in which the row of an output begins, and one that continues that of another.
    for (const part of [texts[7].subarray(100, 200), texts[20].subarray(6000, 6100)]) {
      const at = file.indexOf(part)
      assert.ok(at > 0)
      const page = Math.floor(at / 4096)
      file.fill(0xff, page * 4096, (page + 1) * 4096)
    }
    await writeFile(path, file)
    await using store = await openSqliteStore({ directory })
    const small = store.smallBytes ?? assert.fail()
    const found = await Promise.all(texts.map((text) => small.find(blake3.hash(text))))
    const lost = found.flatMap((bytes, index) => (bytes === null ? [index] : []))
    assert.deepEqual(lost, [7, 20])
    for (const [index, bytes] of found.entries()) if (bytes !== null) assert.deepEqual(Buffer.from(bytes), texts[index])
    assert.equal(await store.checkIntegrity(), 'ok')
    await small.put(blake3.hash(texts[7]), texts[7])
    assert.notEqual(await small.find(blake3.hash(texts[7])), null)
  } finally {
    await rm(directory, { recursive: true })
  }
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

import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openBlake3 } from '../../../lib/files/blake3.ts'
import { silentLog } from '../../../lib/log.ts'
import { diskFileOps, type FileOps } from '../../../src/adapters/blobs/fs/file-ops.ts'
import { openFsBlobs } from '../../../src/adapters/blobs/fs/fs-blobs.ts'
import {
  inChunks,
  listAll,
  patterned,
  put,
  readAll,
  refusedWith,
  testBlobStore,
} from '../../contracts/assets/blob-store.ts'
import { testPartialBlobs } from '../../contracts/assets/partial-blobs.ts'

const blake3 = await openBlake3()
const UNLIMITED = { maxBytes: Number.MAX_SAFE_INTEGER }

async function openFolder() {
  const directory = await mkdtemp(join(tmpdir(), 'atelier-blobs-'))
  return { directory, [Symbol.asyncDispose]: () => rm(directory, { recursive: true }) }
}

async function openStore(files: Partial<FileOps> = {}) {
  const folder = await openFolder()
  const options = { directory: folder.directory, blake3, log: silentLog, files: { ...diskFileOps, ...files } }
  return { ...folder, blobs: await openFsBlobs(options), reopen: () => openFsBlobs(options), hash: blake3.hash }
}

const filesBelow = async (directory: string) =>
  (await readdir(directory, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile())

testBlobStore('fs', openStore)
testPartialBlobs('fs', async () => {
  const store = await openStore()
  return { ...store, one: store.blobs, other: await store.reopen() }
})

test('a blob lies under its hash, readable by its owner only', async () => {
  await using store = await openStore()
  const hash = await put(store.blobs, patterned(10))
  const path = join(store.directory, hash.slice(0, 2), hash.slice(2, 4), hash)
  assert.equal(store.blobs.localPath(hash), path)
  assert.deepEqual(await readFile(path), patterned(10))
  assert.equal((await stat(path)).mode & 0o777, 0o600)
  for (const folder of ['', 'tmp', hash.slice(0, 2), `${hash.slice(0, 2)}/${hash.slice(2, 4)}`]) {
    if (folder !== '') assert.equal((await stat(join(store.directory, folder))).mode & 0o777, 0o700)
  }
})

test('only a hash becomes a path', async () => {
  await using store = await openStore()
  for (const text of ['..', '../../../../etc/passwd', 'a'.repeat(63), 'A'.repeat(64), '']) {
    assert.throws(() => store.blobs.localPath(text), TypeError)
    await assert.rejects(store.blobs.stat(text), TypeError)
  }
})

test('opening removes what a crash left unfinished and keeps what was finished', async () => {
  await using store = await openStore()
  const kept = await put(store.blobs, patterned(100))
  await mkdir(join(store.directory, 'tmp'), { recursive: true })
  await writeFile(join(store.directory, 'tmp', 'half-an-upload'), 'half')
  const again = await store.reopen()
  assert.deepEqual(await readdir(join(store.directory, 'tmp')), [])
  assert.deepEqual(await listAll(again), [kept])
})

test('whatever ends a receive leaves no temporary file', async () => {
  await using store = await openStore()
  async function* breaks() {
    yield patterned(3_000_000)
    throw new Error('gone')
  }
  await assert.rejects(store.blobs.receive(breaks(), UNLIMITED), /gone/)
  await assert.rejects(store.blobs.receive(inChunks(patterned(900_000), 1000), { maxBytes: 800_000 }))
  const discarded = await store.blobs.receive(inChunks(patterned(900_000), 1000), UNLIMITED)
  await discarded.discard()
  const small = await store.blobs.receive(inChunks(patterned(900), 100), UNLIMITED)
  await small.discard()
  assert.deepEqual(await filesBelow(store.directory), [])
})

test('identical bytes leave one file and no temporary one', async () => {
  await using store = await openStore()
  for (const size of [900, 900_000]) await Promise.all([1, 2, 3].map(() => put(store.blobs, patterned(size))))
  assert.equal((await filesBelow(store.directory)).length, 2)
})

test('bytes are synced before they get their name, and the name after', async () => {
  const steps: string[] = []
  const note =
    <Arguments extends unknown[], Result>(step: string, action: (...all: Arguments) => Promise<Result>) =>
    async (...all: Arguments) => {
      const result = await action(...all)
      steps.push(step)
      return result
    }
  await using store = await openStore({
    datasync: note('bytes synced', diskFileOps.datasync),
    rename: note('renamed', diskFileOps.rename),
    syncDirectory: note('folder synced', diskFileOps.syncDirectory),
  })
  for (const size of [1000, 300_000]) {
    steps.length = 0
    await put(store.blobs, patterned(size))
    assert.ok(steps.indexOf('bytes synced') >= 0)
    assert.ok(steps.indexOf('bytes synced') < steps.indexOf('renamed'))
    assert.equal(steps.at(-1), 'folder synced')
  }
})

function diskError(code: string): Error {
  return Object.assign(new Error(`${code}: injected`), { code })
}

const failures: ReadonlyArray<readonly [name: string, files: (error: Error) => Partial<FileOps>]> = [
  ['the first write', (error) => ({ write: () => Promise.reject(error) })],
  ['a later write', (error) => ({ write: failAfter(2, diskFileOps.write, error) })],
  ['the sync', (error) => ({ datasync: () => Promise.reject(error) })],
  ['making the folder', (error) => ({ makeDirectory: failAfter(1, diskFileOps.makeDirectory, error) })],
  ['the rename', (error) => ({ rename: () => Promise.reject(error) })],
]

function failAfter<Arguments extends unknown[], Result>(
  count: number,
  action: (...all: Arguments) => Promise<Result>,
  error: Error,
) {
  let left = count
  return (...all: Arguments) => (left-- > 0 ? action(...all) : Promise.reject(error))
}

for (const [name, fail] of failures) {
  for (const code of ['ENOSPC', 'EDQUOT']) {
    test(`a disk that is full at ${name} (${code}) is refused as full and keeps nothing`, async () => {
      await using store = await openStore(fail(diskError(code)))
      await assert.rejects(put(store.blobs, patterned(4_000_000)), refusedWith('storage_full'))
      assert.deepEqual(await filesBelow(store.directory), [])
      if (name !== 'a later write') {
        await assert.rejects(put(store.blobs, patterned(1000)), refusedWith('storage_full'))
        assert.deepEqual(await filesBelow(store.directory), [])
      }
    })
  }
}

test('another failure of the disk stays a defect and keeps nothing', async () => {
  await using store = await openStore({ write: () => Promise.reject(diskError('EIO')) })
  await assert.rejects(put(store.blobs, patterned(4_000_000)), { code: 'EIO' })
  await assert.rejects(put(store.blobs, patterned(4000)), { code: 'EIO' })
  assert.deepEqual(await filesBelow(store.directory), [])
})

test('the store works again once the disk has room', async () => {
  let isFull = true
  await using store = await openStore({
    write: (...all) => (isFull ? Promise.reject(diskError('ENOSPC')) : diskFileOps.write(...all)),
  })
  await assert.rejects(put(store.blobs, patterned(500_000)), refusedWith('storage_full'))
  isFull = false
  const hash = await put(store.blobs, patterned(500_000))
  assert.ok(patterned(500_000).equals(await readAll(await store.blobs.open(hash))))
})

test('uploads that follow a failed one do not mix their bytes', async () => {
  let failNext = true
  await using store = await openStore({
    write: (...all) => {
      const fails = failNext
      failNext = false
      return fails ? Promise.reject(diskError('EIO')) : diskFileOps.write(...all)
    },
  })
  for (const size of [100_000, 1_500_000]) {
    failNext = true
    await assert.rejects(put(store.blobs, patterned(size, 9)), { code: 'EIO' })
    const seeds = [1, 2, 3, 4, 5, 6]
    const hashes = await Promise.all(seeds.map((seed) => put(store.blobs, patterned(size, seed), 10_000)))
    const expected = seeds.map((seed) => blake3.hash(patterned(size, seed)))
    assert.deepEqual(hashes, expected)
  }
})

test('a failed write ends the receive although the source has gone silent', async () => {
  await using store = await openStore({ write: () => Promise.reject(diskError('ENOSPC')) })
  async function* stalls() {
    yield patterned(2_000_000)
    await new Promise(() => {})
  }
  await assert.rejects(store.blobs.receive(stalls(), UNLIMITED), refusedWith('storage_full'))
})

test('256 MiB pass through with a few buffers of memory', async () => {
  await using store = await openStore()
  const chunk = patterned(65_536)
  let peakBytes = 0
  async function* generated() {
    for (let count = 0; count < 4096; count++) {
      chunk.writeUInt32LE(count)
      if (count % 64 === 0) peakBytes = Math.max(peakBytes, process.memoryUsage.rss())
      yield chunk
    }
  }
  // Buffers and code are warm after the first portion.
  await put(store.blobs, patterned(8_000_000))
  const before = process.memoryUsage.rss()
  const pending = await store.blobs.receive(generated(), UNLIMITED)
  await pending.discard()
  assert.equal(pending.sizeBytes, 256 * 1024 * 1024)
  assert.ok(peakBytes - before < 64 * 1024 * 1024, `grew by ${peakBytes - before} bytes`)
})

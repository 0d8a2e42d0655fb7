/** Two processes on one folder of bytes, as two stores that know nothing of each other. */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openBlake3 } from '../../../lib/files/blake3.ts'
import { silentLog } from '../../../lib/log.ts'
import { diskFileOps, type FileOps } from '../../../src/adapters/blobs/fs/file-ops.ts'
import { openFsBlobs } from '../../../src/adapters/blobs/fs/fs-blobs.ts'
import { inChunks, patterned, put, readAll } from '../../contracts/assets/blob-store.ts'

const blake3 = await openBlake3()
const UNLIMITED = { maxBytes: Number.MAX_SAFE_INTEGER }

async function openTwo(files: Partial<FileOps> = {}) {
  const directory = await mkdtemp(join(tmpdir(), 'atelier-blobs-'))
  const open = () => openFsBlobs({ directory, blake3, log: silentLog, files: { ...diskFileOps, ...files } })
  const one = await open()
  const other = await open()
  return { directory, one, other, [Symbol.asyncDispose]: () => rm(directory, { recursive: true }) }
}

for (const size of [1000, 200_000]) {
  test(`${size} bytes that one process announces before the other has asked stay, whoever is faster`, async () => {
    await using folder = await openTwo()
    const bytes = patterned(size)
    const stored = await put(folder.one, bytes)
    const pending = await folder.other.receive(inChunks(bytes, 10_000), UNLIMITED)
    let asked = 0
    let kept: Promise<void> | null = null
    await folder.one.remove(stored, async () => {
      asked += 1
      if (asked === 1) return false
      // The bytes are set aside by now. The other process has announced them, and keeps them at this moment.
      kept = pending.keep()
      await kept
      return true
    })
    await kept
    assert.ok(bytes.equals(await readAll(await folder.other.open(stored))))
  })

  test(`${size} bytes that are announced after the last question are stored anew`, async () => {
    await using folder = await openTwo()
    const bytes = patterned(size)
    const stored = await put(folder.one, bytes)
    const pending = await folder.other.receive(inChunks(bytes, 10_000), UNLIMITED)
    let kept: Promise<void> | null = null
    let asked = 0
    await folder.one.remove(stored, async () => {
      asked += 1
      if (asked === 2) kept = pending.keep()
      return false
    })
    await kept
    assert.ok(bytes.equals(await readAll(await folder.other.open(stored))))
  })
}

test('a reader waits for bytes that are set aside and come back', async () => {
  await using folder = await openTwo()
  const bytes = patterned(5000)
  const stored = await put(folder.one, bytes)
  let asked = 0
  let reading: Promise<Buffer> | null = null
  await folder.one.remove(stored, async () => {
    asked += 1
    if (asked === 1) return false
    reading = folder.other.open(stored).then(readAll)
    assert.deepEqual(await folder.other.stat(stored), { sizeBytes: 5000 })
    return true
  })
  assert.ok(bytes.equals((await reading) ?? Buffer.alloc(0)))
})

test('bytes that a process could not be asked about come back', async () => {
  await using folder = await openTwo()
  const stored = await put(folder.one, patterned(100))
  let asked = 0
  const removing = folder.one.remove(stored, async () => {
    asked += 1
    if (asked === 1) return false
    throw new Error('the store is away')
  })
  await assert.rejects(removing, /the store is away/)
  assert.deepEqual(await folder.other.stat(stored), { sizeBytes: 100 })
  assert.deepEqual(await readdir(join(folder.directory, 'removing')), [])
})

test('what a process that died had set aside is there again for the next one, but not what another sets aside now', async () => {
  await using folder = await openTwo()
  const stored = await put(folder.one, patterned(100))
  const path = folder.one.localPath(stored) ?? ''
  await mkdir(join(folder.directory, 'removing'), { recursive: true })
  await rename(path, join(folder.directory, 'removing', stored))
  const open = (laterMs: number) =>
    openFsBlobs({ directory: folder.directory, blake3, log: silentLog, now: () => Date.now() + laterMs })
  await open(0)
  assert.deepEqual(await readdir(join(folder.directory, 'removing')), [stored])
  const next = await open(120_000)
  assert.deepEqual(await readdir(join(folder.directory, 'removing')), [])
  assert.ok(patterned(100).equals(await readAll(await next.open(stored))))
})

test('opening removes unfinished files of processes that are gone, and none that another process is writing', async () => {
  await using folder = await openTwo()
  const { directory } = folder
  const open = (own: string, live: readonly string[], laterMs = 0) =>
    openFsBlobs({
      directory,
      blake3,
      log: silentLog,
      users: { own, live: new Set([own, ...live]) },
      now: () => Date.now() + laterMs,
    })
  const temporary = join(directory, 'tmp')
  await open('one', [])
  for (const name of ['one.a', 'gone.b', 'nameless']) await writeFile(join(temporary, name), 'half')
  await open('two', ['one'])
  assert.deepEqual((await readdir(temporary)).sort(), ['nameless', 'one.a'])
  await open('three', ['one', 'two'], 25 * 3_600_000)
  assert.deepEqual(await readdir(temporary), [], 'nobody writes for a day')
})

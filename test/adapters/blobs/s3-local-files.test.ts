/** Files that engines borrow from a bucket: fetched once, kept within a bound, removed with their process. */
import assert from 'node:assert/strict'
import { mkdir, readdir, readFile, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { diskFileOps } from '../../../src/adapters/blobs/fs/file-ops.ts'
import { openLocalFiles } from '../../../src/adapters/blobs/s3/local-files.ts'
import { patterned, put, readAll, refusedWith } from '../../contracts/assets/blob-store.ts'
import { useBuckets } from './s3-rig.ts'

describe('files borrowed from a bucket', () => {
  const { open } = useBuckets()

  test('borrowed files stay while they are borrowed, and the least used go first when room is needed', async () => {
    await using store = await open({ cacheBytes: 2500 })
    const [a, b, c] = await Promise.all([1, 2, 3].map((seed) => put(store.blobs, patterned(1000, seed))))
    const borrow = (hash: string) => store.blobs.borrow?.(hash) ?? assert.fail()
    store.fake.asked.length = 0
    const first = await borrow(a)
    const [again, second] = await Promise.all([borrow(a), borrow(b)])
    assert.equal(again.path, first.path)
    assert.deepEqual(store.fake.asked, ['get', 'get'], 'each is fetched once')
    const third = await borrow(c)
    for (const [file, seed] of [
      [first, 1],
      [second, 2],
      [third, 3],
    ] as const)
      assert.ok(patterned(1000, seed).equals(await readFile(file.path)), 'all are in use, whatever the bound')
    assert.equal((await stat(first.path)).mode & 0o777, 0o600)
    await second[Symbol.asyncDispose]()
    await assert.rejects(stat(second.path), { code: 'ENOENT' })
    await first[Symbol.asyncDispose]()
    assert.ok(patterned(1000, 1).equals(await readFile(first.path)), 'somebody else has it still')
    await again[Symbol.asyncDispose]()
    await third[Symbol.asyncDispose]()
    store.fake.asked.length = 0
    await (await borrow(a))[Symbol.asyncDispose]()
    assert.ok(patterned(1000, 3).equals(await readAll(await store.blobs.open(c))), 'reads use the file that is here')
    assert.deepEqual(store.fake.asked, [])
  })

  test('a file that somebody removed is fetched anew', async () => {
    await using store = await open()
    const stored = await put(store.blobs, patterned(1000))
    const borrow = () => store.blobs.borrow?.(stored) ?? assert.fail()
    await (await borrow())[Symbol.asyncDispose]()
    await rm(join(store.directory, 'this'), { recursive: true })
    await using file = await borrow()
    assert.ok(patterned(1000).equals(await readFile(file.path)))
  })

  test('folders of processes that are gone are removed, and none that may be in use', async () => {
    await using store = await open()
    const { directory } = store
    const hourAgo = new Date(Date.now() - 3_600_000)
    for (const name of ['dead', 'quiet', 'living']) await mkdir(join(directory, name, 'tmp'), { recursive: true })
    for (const name of ['dead', 'living']) await utimes(join(directory, name), hourAgo, hourAgo)
    const users = { own: 'new', live: new Set(['new', 'this', 'living']) }
    await using _files = await openLocalFiles({ directory, maxBytes: 0, users, files: diskFileOps })
    assert.deepEqual((await readdir(directory)).sort(), ['living', 'new', 'quiet', 'this'])
  })

  test('a fetch that fails leaves no file and is tried anew by the next who asks', async () => {
    await using store = await open({ cacheBytes: 0 })
    const stored = await put(store.blobs, patterned(1000))
    store.fake.isDown = true
    await assert.rejects(store.blobs.borrow?.(stored) ?? assert.fail(), refusedWith('store_unavailable'))
    store.fake.isDown = false
    const file = (await store.blobs.borrow?.(stored)) ?? assert.fail()
    assert.ok(patterned(1000).equals(await readFile(file.path)))
    await file[Symbol.asyncDispose]()
    await assert.rejects(stat(file.path), { code: 'ENOENT' }, 'nothing is kept without a use')
  })
})

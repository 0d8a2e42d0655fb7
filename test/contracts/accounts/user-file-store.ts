/** How every store of accounts' small files behaves. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import type { PutUserFile } from '../../../src/domain/accounts/user-files.ts'
import { at, START, type StoreOpener, shareStore, type WholeStoreUnderTest } from '../store-under-test.ts'

const ROOMY = { maxFiles: 100, maxTotalBytes: 1_000_000 }

function newFile(path: string, fields: Partial<PutUserFile> = {}): PutUserFile {
  return { path, bytes: Buffer.from(path), overwrite: false, now: START, limits: ROOMY, ...fields }
}

export function testUserFileStore(opener: StoreOpener<WholeStoreUnderTest>): void {
  describe('files of accounts', () => {
    const store = shareStore(opener)
    const files = () => store().userFiles
    const read = async (accountId: string, path: string) => {
      const bytes = await files().read(accountId, path)
      return bytes === null ? null : Buffer.from(bytes).toString('hex')
    }
    const paths = async (accountId: string) => (await files().list(accountId)).map(({ path }) => path)

    test('are given back byte by byte, listed by path, and belong to their account', async () => {
      const [accountId, stranger] = [randomUUID(), randomUUID()]
      const bytes = Uint8Array.from({ length: 256 }, (_, index) => index)
      const stored = await files().put(accountId, newFile('b/ä.json', { bytes }))
      const file = { path: 'b/ä.json', sizeBytes: 256, createdAt: START, modifiedAt: START }
      assert.deepEqual(stored, { outcome: 'stored', file })
      await files().put(accountId, newFile('a', { bytes: new Uint8Array() }))
      assert.deepEqual(await files().list(accountId), [{ ...file, path: 'a', sizeBytes: 0 }, file])
      assert.equal(await read(accountId, 'b/ä.json'), Buffer.from(bytes).toString('hex'))
      assert.equal(await read(accountId, 'a'), '')
      assert.equal(await read(accountId, 'b'), null)
      assert.equal(await read(stranger, 'a'), null)
      assert.deepEqual(await paths(stranger), [])
      assert.equal(await files().remove(stranger, 'a'), false)
    })

    test('are replaced only where that is asked for; a replaced one keeps the time of its creation', async () => {
      const accountId = randomUUID()
      await files().put(accountId, newFile('a'))
      const again = { bytes: Buffer.from('xyz'), now: at(5) }
      assert.deepEqual(await files().put(accountId, newFile('a', again)), { outcome: 'exists' })
      assert.equal(await read(accountId, 'a'), Buffer.from('a').toString('hex'))
      const file = { path: 'a', sizeBytes: 3, createdAt: START, modifiedAt: at(5) }
      const replaced = await files().put(accountId, newFile('a', { ...again, overwrite: true }))
      assert.deepEqual(replaced, { outcome: 'stored', file })
      assert.deepEqual(await files().list(accountId), [file])
    })

    test('are bounded in number and in sum; what replaces a file counts instead of it', async () => {
      const accountId = randomUUID()
      const limits = { maxFiles: 2, maxTotalBytes: 10 }
      const put = async (path: string, length: number) =>
        (await files().put(accountId, newFile(path, { bytes: Buffer.alloc(length), overwrite: true, limits }))).outcome
      assert.equal(await put('a', 6), 'stored')
      assert.equal(await put('b', 5), 'no_room')
      assert.equal(await put('b', 4), 'stored')
      assert.equal(await put('c', 0), 'no_room')
      assert.equal(await put('a', 7), 'no_room')
      assert.equal(await put('a', 5), 'stored')
      assert.equal(await put('b', 5), 'stored')
      assert.deepEqual(await paths(accountId), ['a', 'b'])
    })

    test('many at once never get beyond the bound', async () => {
      const accountId = randomUUID()
      const limits = { maxFiles: 3, maxTotalBytes: 1_000 }
      const puts = Array.from({ length: 20 }, (_, index) => files().put(accountId, newFile(`f${index}`, { limits })))
      const stored = (await Promise.all(puts)).filter(({ outcome }) => outcome === 'stored')
      assert.equal(stored.length, 3)
      assert.equal((await paths(accountId)).length, 3)
    })

    test('move with their bytes and times, and over another file only where that is asked for', async () => {
      const accountId = randomUUID()
      await files().put(accountId, newFile('a'))
      await files().put(accountId, newFile('b', { now: at(1) }))
      const move = (from: string, to: string, overwrite = false) => files().move(accountId, { from, to, overwrite })
      assert.deepEqual(await move('nowhere', 'c'), { outcome: 'not_found' })
      assert.deepEqual(await move('a', 'b'), { outcome: 'exists' })
      const file = { path: 'c/a', sizeBytes: 1, createdAt: START, modifiedAt: START }
      assert.deepEqual(await move('a', 'c/a'), { outcome: 'stored', file })
      assert.deepEqual(await move('c/a', 'c/a'), { outcome: 'stored', file })
      assert.deepEqual(await move('c/a', 'b', true), { outcome: 'stored', file: { ...file, path: 'b' } })
      assert.equal(await read(accountId, 'b'), Buffer.from('a').toString('hex'))
      assert.deepEqual(await paths(accountId), ['b'])
    })

    test('are gone once removed, and make room', async () => {
      const accountId = randomUUID()
      const limits = { maxFiles: 1, maxTotalBytes: 10 }
      await files().put(accountId, newFile('a', { limits }))
      assert.equal(await files().remove(accountId, 'a'), true)
      assert.equal(await files().remove(accountId, 'a'), false)
      assert.equal(await read(accountId, 'a'), null)
      assert.equal((await files().put(accountId, newFile('b', { limits }))).outcome, 'stored')
    })
  })
}

/** What processes that share a store must agree on: the keys that sign addresses, and the folder of the bytes. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, test } from 'node:test'
import { createSealer } from '../../../lib/sealer.ts'
import type { MetaStore } from '../../domain/store.ts'
import { bindBlobs, toFolderPlace } from './bind-blobs.ts'
import { openSigningKeys } from './open-signing-keys.ts'

const root = mkdtempSync(path.join(tmpdir(), 'atelier-shared-'))
after(() => rmSync(root, { recursive: true, force: true }))
const makeFolder = () => mkdtempSync(path.join(root, 'folder-'))

function createMeta(): MetaStore & { readonly values: Map<string, string> } {
  const values = new Map<string, string>()
  return {
    values,
    readMeta: async (key) => values.get(key) ?? null,
    async changeMeta(key, change) {
      const value = change(values.get(key) ?? null)
      values.set(key, value)
      return value
    },
    async ensureMeta(key, make) {
      if (!values.has(key)) values.set(key, make())
      return values.get(key) ?? ''
    },
  }
}

describe('signing keys in a shared store', () => {
  const [key, newKey] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
  const openWith = (store: MetaStore, sealer: ReturnType<typeof createSealer>) =>
    openSigningKeys({ configured: [], kept: { in: 'store', store, sealer } })

  test('are the same for every process, and sealed', async () => {
    const store = createMeta()
    const [one, other] = [await openWith(store, createSealer(key)), await openWith(store, createSealer(key))]
    assert.deepEqual(one, other)
    const [stored] = store.values.values()
    const secret = Buffer.from(one[0].secret)
    for (const spelled of ['base64', 'base64url', 'hex'] as const) {
      assert.ok(!stored.includes(secret.toString(spelled)))
      assert.ok(!Buffer.from(stored, 'base64').toString('latin1').includes(secret.toString(spelled)))
    }
  })

  test('are refused to a process with a wrong secret key, with what to do', async () => {
    const store = createMeta()
    await openWith(store, createSealer(key))
    await assert.rejects(
      openWith(store, createSealer(newKey)),
      /Set ATELIER_SECRET_KEY to theirs.*give the former one too/,
    )
  })
})

describe('when the secret key is exchanged, signing keys in a shared store', () => {
  const [key, newKey] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
  const openWith = (store: MetaStore, sealer: ReturnType<typeof createSealer>) =>
    openSigningKeys({ configured: [], kept: { in: 'store', store, sealer } })

  test('are sealed anew by the first process that has both, so that the former one can be dropped', async () => {
    const store = createMeta()
    const before = await openWith(store, createSealer(key))
    assert.deepEqual(await openWith(store, createSealer(newKey, [key])), before)
    assert.deepEqual(await openWith(store, createSealer(newKey)), before)
    await assert.rejects(openWith(store, createSealer(key)), /Set ATELIER_SECRET_KEY to theirs/)
  })

  test('are left as they are by processes whose key has not changed', async () => {
    const store = createMeta()
    await openWith(store, createSealer(newKey, [key]))
    const stored = [...store.values]
    await openWith(store, createSealer(newKey, [key]))
    assert.deepEqual([...store.values], stored)
  })
})

describe('the folder of the bytes', () => {
  test('is bound once, also by processes that start together', async () => {
    const store = { ...createMeta(), isExclusive: false }
    const folder = makeFolder()
    await Promise.all([bindBlobs(store, toFolderPlace(folder)), bindBlobs(store, toFolderPlace(folder))])
    assert.equal((await readFile(path.join(folder, 'id'), 'utf8')).trim(), store.values.get('blobs_id'))
    await bindBlobs(store, toFolderPlace(folder))
  })

  test('of another database is refused', async () => {
    const folder = makeFolder()
    await bindBlobs({ ...createMeta(), isExclusive: false }, toFolderPlace(folder))
    await assert.rejects(
      bindBlobs({ ...createMeta(), isExclusive: true }, toFolderPlace(folder)),
      /belong to another database/,
    )
  })

  test('must be the one that the other processes use, unless only one process can have the store open', async () => {
    const store = { ...createMeta(), isExclusive: false }
    await bindBlobs(store, toFolderPlace(makeFolder()))
    const own = makeFolder()
    await assert.rejects(bindBlobs(store, toFolderPlace(own)), (error: Error) => {
      assert.match(error.message, /are not in .* Give every process the folder that holds them/)
      return error.message.includes(store.values.get('blobs_id') ?? 'no id')
    })
    await writeFile(path.join(own, 'id'), `${store.values.get('blobs_id')}\n`)
    await bindBlobs(store, toFolderPlace(own))
    await bindBlobs({ ...store, isExclusive: true }, toFolderPlace(makeFolder()))
  })
})

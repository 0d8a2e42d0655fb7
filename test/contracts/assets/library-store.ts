/** How every store keeps what the library says of files, and files that are being fetched. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import type { Asset } from '../../../src/domain/assets/asset.ts'
import type { AssetImport } from '../../../src/domain/assets/library/import-store.ts'
import type { AssetNote } from '../../../src/domain/assets/library/library-store.ts'
import {
  at,
  hashOf,
  newOutput,
  START,
  type StoreOpener,
  shareStore,
  Tenant,
  type WholeStoreUnderTest,
} from '../store-under-test.ts'

function newNote(fields: Partial<AssetNote> = {}): AssetNote {
  return {
    ...{ name: 'Ü', contentType: null, tags: ['b', 'a'], metadata: '{"b":1,"2":18446744073709551615}' },
    ...{ previewId: randomUUID(), isHidden: false, changedAt: 5, ...fields },
  }
}

function newImport({ accountId }: Pick<Tenant, 'accountId'>, fields: Partial<AssetImport> = {}): AssetImport {
  return {
    ...{ id: randomUUID(), accountId, url: 'https://models.example/a', name: 'a.safetensors', status: 'running' },
    ...{ bytesTotal: 2 ** 40, bytesDone: 0, assetId: null, error: null, createdAt: at(0), changedAt: at(0) },
    ...{ expiresAt: at(1000), ...fields },
  }
}

export function testLibraryStore(opener: StoreOpener<WholeStoreUnderTest>): void {
  const store = shareStore(opener)

  async function mint({ accountId }: Tenant, filePath: string | null, fields: Partial<Asset> = {}): Promise<Asset> {
    const asset: Asset = {
      ...{ id: randomUUID(), accountId, hash: hashOf(randomUUID()), sizeBytes: 1, contentType: 'image/png', filePath },
      ...{ tags: ['t'], createdAt: START, expiresAt: null, jobId: null, ...fields },
    }
    await store().assets.mint({ asset, keyClaim: null, mustOwnHash: false })
    return asset
  }

  async function makeOutput(tenant: Tenant): Promise<string> {
    const { lease } = await tenant.run()
    const output = newOutput({ hash: hashOf(randomUUID()) })
    await store().jobs.commit(lease, { outputs: [output] })
    return output.assetId
  }

  describe('the library', () => {
    test('has a shelf for models, one for other uploads and one for outputs, each with the newest first', async () => {
      const [tenant, other] = [await Tenant.create(store()), await Tenant.create(store())]
      await mint(other, 'theirs.png')
      const model = await mint(tenant, 'models/vae/a.safetensors')
      const uploads = [await mint(tenant, 'input/a.png'), await mint(tenant, null), await mint(tenant, 'modelsx/a.png')]
      const outputs = [await makeOutput(tenant), await makeOutput(tenant)]
      const list = async (shelf: 'models' | 'uploads' | 'outputs', limit = 10, now = START) =>
        (await store().library.listNewest(tenant.accountId, { shelf, limit, now })).map(({ id }) => id)
      assert.deepEqual(await list('models'), [model.id])
      assert.deepEqual(await list('uploads'), uploads.map(({ id }) => id).toReversed())
      assert.deepEqual(await list('uploads', 1), [uploads[2]?.id])
      assert.deepEqual(await list('outputs'), outputs.toReversed())
      const brief = await mint(tenant, 'brief.png', { expiresAt: at(10) })
      assert.equal((await list('uploads', 1, at(9)))[0], brief.id)
      assert.equal((await list('uploads', 1, at(10)))[0], uploads[2]?.id)
    })

    test('reads a note back whole, of an upload and of an output, and only within its account', async () => {
      const [tenant, other] = [await Tenant.create(store()), await Tenant.create(store())]
      const { library, assets } = store()
      const upload = await mint(tenant, 'a.png')
      for (const id of [upload.id, await makeOutput(tenant)]) {
        const to = newNote()
        const replace = (accountId: string, from: AssetNote | null) =>
          library.replaceNote(accountId, id, { from, to, now: START })
        assert.equal(await replace(other.accountId, null), false)
        assert.equal(await replace(tenant.accountId, newNote()), false)
        const before = await assets.find(tenant.accountId, id, START)
        assert.equal(await replace(tenant.accountId, null), true)
        assert.deepEqual(await library.findNoted(tenant.accountId, [id, randomUUID()], START), [
          { ...before, note: to },
        ])
        assert.deepEqual(await library.findNoted(other.accountId, [id], START), [])
        assert.deepEqual(await assets.find(tenant.accountId, id, START), before)
        assert.equal(await library.replaceNote(tenant.accountId, id, { from: to, to: newNote(), now: START }), true)
      }
    })

    test('of changes that are made from the same note, one is made', async () => {
      const tenant = await Tenant.create(store())
      const { id } = await mint(tenant, 'a.png')
      const changes = Array.from({ length: 5 }, (_, index) =>
        store().library.replaceNote(tenant.accountId, id, {
          from: null,
          to: newNote({ name: String(index) }),
          now: START,
        }),
      )
      assert.equal((await Promise.all(changes)).filter(Boolean).length, 1)
    })
  })

  describe('fetched files', () => {
    test('are bounded while they run, also when many begin at once; those whose process is gone do not count', async () => {
      const tenant = await Tenant.create(store())
      const bounds = { maxRunning: 2, aliveSince: at(-10) }
      const begun = await Promise.all(
        Array.from({ length: 5 }, () => store().imports.create(newImport(tenant), bounds)),
      )
      assert.equal(begun.filter(Boolean).length, 2)
      assert.equal(await store().imports.create(newImport(tenant), { ...bounds, aliveSince: at(0) }), true)
    })

    test('come back as they were written, move while they run, and stay as they ended', async () => {
      const [tenant, other] = [await Tenant.create(store()), await Tenant.create(store())]
      const { imports } = store()
      const begun = newImport(tenant)
      await imports.create(begun, { maxRunning: 1, aliveSince: at(0) })
      assert.deepEqual(await imports.find(tenant.accountId, begun.id), begun)
      assert.equal(await imports.find(other.accountId, begun.id), null)
      const error = { code: 'fetch_failed', message: 'ü' }
      const failed = { ...begun, status: 'failed', bytesTotal: null, bytesDone: 7, error, changedAt: at(3) } as const
      assert.equal(await imports.move(other.accountId, begun.id, failed), false)
      assert.equal(await imports.move(tenant.accountId, begun.id, failed), true)
      assert.equal(await imports.move(tenant.accountId, begun.id, { ...begun, status: 'completed' }), false)
      assert.deepEqual(await imports.find(tenant.accountId, begun.id), failed)
    })

    test('are forgotten after their life', async () => {
      const tenant = await Tenant.create(store())
      const [brief, lasting] = [newImport(tenant, { expiresAt: at(-1) }), newImport(tenant, { expiresAt: at(1) })]
      for (const each of [brief, lasting]) await store().imports.create(each, { maxRunning: 9, aliveSince: at(0) })
      assert.ok((await store().imports.expire(at(0), 100)) >= 1)
      assert.equal(await store().imports.find(tenant.accountId, brief.id), null)
      assert.deepEqual(await store().imports.find(tenant.accountId, lasting.id), lasting)
    })
  })
}

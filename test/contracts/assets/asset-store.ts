/** How every asset store behaves: owned records over shared blobs. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import type { Asset } from '../../../src/domain/assets/asset.ts'
import type { MintOutcome } from '../../../src/domain/assets/asset-store.ts'
import type { KeyClaim } from '../../../src/domain/idempotency/idempotency-key.ts'
import {
  at,
  hashOf,
  keyClaim,
  newOutput,
  START,
  type StoreOpener,
  shareStore,
  Tenant,
  withStore,
} from '../store-under-test.ts'

interface MintOptions {
  readonly key?: KeyClaim
  readonly mustOwnHash?: boolean
}

function newAsset(tenant: Tenant, fields: Partial<Asset> = {}): Asset {
  return {
    id: randomUUID(),
    accountId: tenant.accountId,
    hash: hashOf(tenant.accountId),
    sizeBytes: 12,
    contentType: 'image/png',
    filePath: 'photo.png',
    tags: [],
    createdAt: START,
    expiresAt: null,
    jobId: null,
    ...fields,
  }
}

function mint(tenant: Tenant, fields: Partial<Asset> = {}, options: MintOptions = {}): Promise<MintOutcome> {
  const { key = null, mustOwnHash = false } = options
  return tenant.store.assets.mint({ asset: newAsset(tenant, fields), keyClaim: key, mustOwnHash })
}

async function minted(tenant: Tenant, fields: Partial<Asset> = {}): Promise<Asset> {
  const outcome = await mint(tenant, fields)
  if (outcome.outcome !== 'minted' && outcome.outcome !== 'existing') throw new Error(outcome.outcome)
  return outcome.asset
}

export function testAssetStore(opener: StoreOpener): void {
  describe('assets', () => {
    const store = shareStore(opener)

    test('a minted record reads back whole, and only within its account', async () => {
      const tenant = await Tenant.create(store())
      const stranger = await Tenant.create(store())
      const asset = newAsset(tenant, { filePath: 'input/ü x.png', tags: ['b', 'a'], expiresAt: at(500) })
      const outcome = await store().assets.mint({ asset, keyClaim: null, mustOwnHash: false })
      assert.deepEqual(outcome, { outcome: 'minted', asset, newToAccount: true })
      assert.deepEqual(await store().assets.find(tenant.accountId, asset.id, START), asset)
      assert.equal(await store().assets.find(stranger.accountId, asset.id, START), null)
      assert.deepEqual(await store().assets.findMany(stranger.accountId, [asset.id], START), [])
      assert.deepEqual(await store().assets.findNewestByHash(stranger.accountId, [asset.hash], START), [])
      assert.equal(await store().assets.remove(stranger.accountId, asset.id, START), 'not_found')
    })

    test('an id that was promised and has other bytes by now is taken, also when both come at once', async () => {
      for (const isAtOnce of [false, true]) {
        const tenant = await Tenant.create(store())
        const id = randomUUID()
        const mints = ['a', 'b'].map((letter) => () => mint(tenant, { id, hash: hashOf(letter + id), filePath: id }))
        const outcomes = isAtOnce ? await Promise.all(mints.map((act) => act())) : [await mints[0](), await mints[1]()]
        assert.deepEqual(outcomes.map(({ outcome }) => outcome).toSorted(), ['id_taken', 'minted'])
        const [first] = outcomes.flatMap((outcome) => (outcome.outcome === 'minted' ? [outcome.asset] : []))
        assert.deepEqual(await store().assets.find(tenant.accountId, id, START), first)
      }
    })

    test('what an account keeps is counted, equal bytes once, until their last record is gone', async () => {
      const tenant = await Tenant.create(store())
      const stranger = await Tenant.create(store())
      const { assets } = store()
      const stored = () => assets.storedBytes(tenant.accountId)
      assert.equal(await stored(), 0)
      const first = await minted(tenant, { hash: hashOf('kept'), sizeBytes: 100 })
      const second = await minted(tenant, { hash: hashOf('kept'), sizeBytes: 100, filePath: 'other.png' })
      await minted(tenant, { hash: hashOf('kept'), sizeBytes: 100 })
      await minted(stranger, { hash: hashOf('kept'), sizeBytes: 100 })
      assert.equal(await stored(), 100)
      const { lease } = await tenant.run({ expiresAt: at(500) })
      const outputs = [
        newOutput({ hash: hashOf('made'), sizeBytes: 7 }),
        newOutput({ hash: hashOf('kept'), sizeBytes: 100 }),
      ]
      await store().jobs.commit(lease, { outputs })
      assert.equal(await stored(), 107)
      await assets.remove(tenant.accountId, first.id, START)
      await assets.remove(tenant.accountId, second.id, START)
      assert.equal(await stored(), 107)
      assert.equal(await assets.storedBytes(stranger.accountId), 100)
    })

    test('the same hash, path and tags give the same record; any difference a new one', async () => {
      const tenant = await Tenant.create(store())
      const asset = await minted(tenant, { tags: ['t'] })
      assert.deepEqual(await mint(tenant, { tags: ['t'] }), { outcome: 'existing', asset })
      for (const fields of [{ tags: [] }, { tags: ['t'], filePath: 'other.png' }, { tags: ['t'], filePath: null }]) {
        const outcome = await mint(tenant, fields)
        assert.equal(outcome.outcome, 'minted')
        assert.equal(outcome.outcome === 'minted' && outcome.newToAccount, false)
        assert.equal((await mint(tenant, fields)).outcome, 'existing')
      }
    })

    test('the bytes of another account do not show', async () => {
      const [tenant, stranger] = [await Tenant.create(store()), await Tenant.create(store())]
      const { hash } = await minted(tenant)
      assert.deepEqual(await mint(stranger, { hash }, { mustOwnHash: true }), { outcome: 'hash_unknown' })
      const outcome = await mint(stranger, { hash })
      assert.equal(outcome.outcome === 'minted' && outcome.newToAccount, true)
    })

    test('a record from a hash needs one that is alive', async () => {
      const tenant = await Tenant.create(store())
      await minted(tenant, { expiresAt: at(100) })
      const later = { filePath: 'copy.png', createdAt: at(100) }
      assert.deepEqual(await mint(tenant, later, { mustOwnHash: true }), { outcome: 'hash_unknown' })
      assert.equal((await mint(tenant, { ...later, createdAt: at(99) }, { mustOwnHash: true })).outcome, 'minted')
    })

    test('minting again extends a life and never shortens it', async () => {
      const tenant = await Tenant.create(store())
      const { id } = await minted(tenant, { expiresAt: at(100) })
      const lives = [at(50), at(300), null, at(1)]
      const seen: (Date | null)[] = []
      for (const expiresAt of lives) {
        const asset = await minted(tenant, { expiresAt })
        assert.equal(asset.id, id)
        seen.push(asset.expiresAt)
      }
      assert.deepEqual(seen, [at(100), at(300), null, null])
    })

    test('a record past its life is gone for every read, and minting makes a new one', async () => {
      const tenant = await Tenant.create(store())
      const { id, hash } = await minted(tenant, { expiresAt: at(100) })
      const { assets } = store()
      assert.equal((await assets.find(tenant.accountId, id, at(99)))?.id, id)
      assert.equal(await assets.find(tenant.accountId, id, at(100)), null)
      assert.deepEqual(await assets.findMany(tenant.accountId, [id], at(100)), [])
      const query = { filePaths: ['photo.png'], origin: 'upload', now: at(100) } as const
      assert.deepEqual(await assets.findNewestByPath(tenant.accountId, query), [])
      assert.deepEqual(await assets.findNewestByHash(tenant.accountId, [hash], at(100)), [])
      assert.equal(await assets.remove(tenant.accountId, id, at(100)), 'not_found')
      assert.notEqual((await minted(tenant, { createdAt: at(100) })).id, id)
    })

    test('a key is single use across uploads and jobs', async () => {
      const tenant = await Tenant.create(store())
      const job = await tenant.submit({}, keyClaim('job-key'))
      assert.deepEqual(await mint(tenant, {}, { key: keyClaim('job-key') }), {
        outcome: 'key_reused',
        holder: { jobId: job.id, assetId: null },
      })
      const outcome = await mint(tenant, {}, { key: keyClaim('asset-key') })
      assert.ok(outcome.outcome === 'minted')
      const holder = { jobId: null, assetId: outcome.asset.id }
      assert.deepEqual(await mint(tenant, {}, { key: keyClaim('asset-key') }), { outcome: 'key_reused', holder })
      assert.deepEqual(await store().jobs.submit(tenant.newJob(), keyClaim('asset-key')), {
        outcome: 'key_reused',
        holder,
      })
    })

    test('a refused mint leaves its key free', async () => {
      const tenant = await Tenant.create(store())
      await mint(tenant, {}, { key: keyClaim('k'), mustOwnHash: true })
      assert.equal(await store().keys.findKey(tenant.accountId, 'k', START), null)
    })

    test('many are found at once; unknown and foreign ids are left out', async () => {
      const [tenant, stranger] = [await Tenant.create(store()), await Tenant.create(store())]
      const [a, b, foreign] = [await minted(tenant), await minted(tenant, { filePath: 'b' }), await minted(stranger)]
      const found = await store().assets.findMany(tenant.accountId, [b.id, foreign.id, randomUUID(), a.id], START)
      assert.deepEqual(new Set(found.map(({ id }) => id)), new Set([a.id, b.id]))
      assert.deepEqual(await store().assets.findMany(tenant.accountId, [], START), [])
    })

    test('the newest record of a path is the one that was minted last, also when it was minted before', async () => {
      const tenant = await Tenant.create(store())
      const query = { filePaths: ['photo.png', 'no'], origin: 'upload', now: START } as const
      const newest = () => store().assets.findNewestByPath(tenant.accountId, query)
      const first = await minted(tenant, { hash: hashOf('first') })
      const second = await minted(tenant, { hash: hashOf('second') })
      assert.deepEqual(await newest(), [second])
      assert.equal((await minted(tenant, { hash: hashOf('first') })).id, first.id)
      assert.deepEqual(await newest(), [first])
      const [byHash] = await store().assets.findNewestByHash(tenant.accountId, [hashOf('second')], START)
      assert.equal(byHash.id, second.id)
    })

    test('of several paths the one that was minted last comes first, whatever the clock said', async () => {
      const tenant = await Tenant.create(store())
      const plain = await minted(tenant, { hash: hashOf('plain'), filePath: 'cat.png', createdAt: at(5) })
      const inFolder = await minted(tenant, { hash: hashOf('folder'), filePath: 'input/cat.png' })
      const query = { filePaths: ['cat.png', 'input/cat.png'], origin: 'upload', now: START } as const
      assert.deepEqual(await store().assets.findNewestByPath(tenant.accountId, query), [inFolder, plain])
      await minted(tenant, { hash: hashOf('plain'), filePath: 'cat.png' })
      assert.deepEqual(await store().assets.findNewestByPath(tenant.accountId, query), [plain, inFolder])
    })

    test('a folder holds the newest upload of each path directly in it, of this account and alive', async () => {
      const tenant = await Tenant.create(store())
      const stranger = await Tenant.create(store())
      const put = (filePath: string, text = filePath) => minted(tenant, { hash: hashOf(text), filePath })
      await put('set/a.png', 'old')
      const first = await put('set/a.png', 'new')
      const second = await put('input/set/b.png')
      for (const other of ['set/deeper/c.png', 'set.png', 'settle/d.png', 'set0/e.png']) await put(other)
      await minted(tenant, { hash: hashOf('gone'), filePath: 'set/gone.png', expiresAt: at(1) })
      await minted(stranger, { hash: hashOf('theirs'), filePath: 'set/theirs.png' })
      const find = (limit: number) =>
        store().assets.findInFolders(tenant.accountId, { folders: ['set', 'input/set'], limit, now: at(2) })
      assert.deepEqual(await find(10), [second, first])
      assert.equal((await find(1)).length, 1)
    })

    test('an output never stands in for an upload of its name, nor an upload for an output', async () => {
      const tenant = await Tenant.create(store())
      const find = async (origin: 'upload' | 'output') => {
        const query = { filePaths: ['photo.png'], origin, now: START }
        return (await store().assets.findNewestByPath(tenant.accountId, query)).map(({ id }) => id)
      }
      const { lease } = await tenant.run()
      const [older, newer] = ['older', 'newer'].map((text) => newOutput({ hash: hashOf(text), name: 'photo.png' }))
      await store().jobs.commit(lease, { outputs: [older] })
      assert.deepEqual([await find('upload'), await find('output')], [[], [older.assetId]])
      const upload = await minted(tenant)
      await store().jobs.commit(lease, { outputs: [newer] })
      assert.deepEqual([await find('upload'), await find('output')], [[upload.id], [newer.assetId]])
    })

    test('a removed record is gone; removing it again finds nothing', async () => {
      const tenant = await Tenant.create(store())
      const { id } = await minted(tenant)
      assert.equal(await store().assets.remove(tenant.accountId, id, START), 'removed')
      assert.equal(await store().assets.remove(tenant.accountId, id, START), 'not_found')
      assert.equal(await store().assets.find(tenant.accountId, id, START), null)
    })

    test("an upload of the same bytes and name is not the job's output record", async () => {
      const tenant = await Tenant.create(store())
      const { lease } = await tenant.run()
      const output = newOutput({ hash: hashOf(tenant.accountId), name: 'photo.png' })
      await store().jobs.commit(lease, { outputs: [output] })
      const outcome = await mint(tenant)
      assert.ok(outcome.outcome === 'minted')
      assert.equal(outcome.newToAccount, false)
      assert.notEqual(outcome.asset.id, output.assetId)
    })
  })

  test('expired records are swept, a limited number per call, and their blobs become collectable', () =>
    withStore(opener, async (store) => {
      const tenant = await Tenant.create(store)
      const hashes = ['a', 'b', 'c'].map((name) => hashOf(name))
      for (const hash of hashes) await minted(tenant, { hash, expiresAt: at(100) })
      await minted(tenant, { hash: hashOf('forever') })
      assert.equal(await store.assets.expire(at(99), 10), 0)
      assert.equal(await store.assets.expire(at(100), 2), 2)
      assert.equal(await store.assets.expire(at(100), 10), 1)
      assert.deepEqual(await store.assets.retireBlobs(at(100), 10), [])
      assert.deepEqual(new Set(await store.assets.retireBlobs(at(101), 10)), new Set(hashes))
      assert.deepEqual(await store.assets.knownBlobs([...hashes, hashOf('forever')]), [hashOf('forever')])
    }))

  test('a blob goes once nothing has referenced it since the cutoff, and not before', () =>
    withStore(opener, async (store) => {
      const [tenant, other] = [await Tenant.create(store), await Tenant.create(store)]
      const hash = hashOf('shared')
      const [mine, theirs] = [await minted(tenant, { hash }), await minted(other, { hash })]
      await store.assets.remove(tenant.accountId, mine.id, at(10))
      assert.deepEqual(await store.assets.retireBlobs(at(1000), 10), [])
      await store.assets.remove(other.accountId, theirs.id, at(2000))
      assert.deepEqual(await store.assets.retireBlobs(at(2000), 10), [])
      assert.deepEqual(await store.assets.retireBlobs(at(2001), 10), [hash])
      assert.deepEqual(await store.assets.retireBlobs(at(9999), 10), [])
    }))

  test('an announced blob is known, is collected when no record follows, and is younger after each announcement', () =>
    withStore(opener, async (store) => {
      const { assets } = store
      const tenant = await Tenant.create(store)
      const [orphan, kept] = [hashOf('orphan'), hashOf('kept')]
      for (const hash of [orphan, kept]) await assets.announceBlob(hash, 4, at(0))
      assert.deepEqual(await assets.knownBlobs([orphan, hashOf('never')]), [orphan])
      await assets.announceBlob(orphan, 4, at(500))
      await minted(tenant, { hash: kept })
      assert.deepEqual(await assets.retireBlobs(at(500), 10), [])
      assert.deepEqual(await assets.retireBlobs(at(501), 10), [orphan])
      assert.deepEqual(await assets.knownBlobs([orphan, kept]), [kept])
    }))

  test('candidates that are in use do not hide collectable ones behind them', () =>
    withStore(opener, async (store) => {
      const tenant = await Tenant.create(store)
      for (let count = 0; count < 250; count += 1) {
        await store.assets.announceBlob(hashOf(`used-${count}`), 1, at(count))
        await minted(tenant, { hash: hashOf(`used-${count}`) })
      }
      await store.assets.announceBlob(hashOf('orphan'), 1, at(900))
      assert.deepEqual(await store.assets.retireBlobs(at(1000), 10), [hashOf('orphan')])
    }))
}

/** How every store keeps builds, releases and uploaded files. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { isDeployable, releaseStatus } from '../../../src/domain/environments/build.ts'
import {
  at,
  DAY_MS,
  hashOf,
  START,
  type StoreOpener,
  shareStore,
  type WholeStoreUnderTest,
} from '../store-under-test.ts'
import { Builds, CPU, NVIDIA } from './build-rig.ts'

export function testBuildStore(opener: StoreOpener<WholeStoreUnderTest>): void {
  describe('builds and releases', () => {
    const store = shareStore(opener)
    const newBuilds = () => new Builds(store())

    test('a build is found as it was saved, by its own account only, and listed with what it holds', async () => {
      const builds = newBuilds()
      const blobId = await builds.upload('weights')
      const definition = {
        baseComfyVersion: 'v0.3.40',
        models: [{ type: 'checkpoints', filename: 'a.safetensors', blobId }],
        customNodes: [{ name: 'pack', repository: 'https://github.com/a/b', commit: 'c'.repeat(40) }],
      }
      const build = await builds.build(definition)
      assert.deepEqual(await store().builds.find(builds.accountId, build.id), build)
      assert.deepEqual(build.definition, definition)
      assert.equal(await store().builds.find(randomUUID(), build.id), null)
      const { definition: _, ...rest } = build
      const [listed, ...others] = await store().builds.list(builds.accountId, { after: null, limit: 10 })
      assert.deepEqual(listed, { ...rest, modelCount: 1, packCount: 1, blobBytes: 'weights'.length })
      assert.equal(others.length, 0)
    })

    test('pages of builds have each one once, and an account has as many as it may, however many come at once', async () => {
      const builds = newBuilds()
      const made = await Promise.all(Array.from({ length: 8 }, () => store().builds.create(builds.newBuild(), 5)))
      assert.equal(made.filter(({ outcome }) => outcome === 'saved').length, 5)
      assert.equal(made.filter(({ outcome }) => outcome === 'too_many').length, 3)
      const seen: string[] = []
      for (let after: string | null = null; ; ) {
        const page: readonly { readonly id: string }[] = await store().builds.list(builds.accountId, {
          after,
          limit: 2,
        })
        if (page.length === 0) break
        seen.push(...page.map(({ id }) => id))
        after = seen[seen.length - 1]
      }
      assert.equal(new Set(seen).size, 5)
      assert.deepEqual(seen, [...seen].sort().reverse())
    })

    test('of changes from the same revision one is saved; each moves the revision, also within a millisecond', async () => {
      const builds = newBuilds()
      const build = await builds.build()
      const change = (name: string | null) =>
        store().builds.change(builds.accountId, build.id, {
          ...{
            definition: { baseImage: 'cpu-py312' },
            name,
            description: 'for all',
            expected: build.updatedAt,
            at: START,
          },
        })
      const outcomes = await Promise.all([change('one'), change('two'), change(null)])
      assert.deepEqual(outcomes.map(({ outcome }) => outcome).sort(), ['changed', 'changed', 'saved'])
      const now = await store().builds.find(builds.accountId, build.id)
      assert.ok(now !== null && now.updatedAt > build.updatedAt)
      assert.equal(now.description, 'for all')
      const forced = await store().builds.change(builds.accountId, build.id, {
        ...{ definition: {}, name: null, description: null, expected: null, at: START },
      })
      assert.ok(forced.outcome === 'saved' && forced.build.updatedAt > now.updatedAt)
      assert.equal(forced.build.description, 'for all')
      const elsewhere = { definition: {}, name: null, description: null, expected: null, at: START }
      assert.deepEqual(await store().builds.change(randomUUID(), build.id, elsewhere), { outcome: 'unknown' })
    })

    test('a build names only files that the account has uploaded as that kind, and nothing changes otherwise', async () => {
      const builds = newBuilds()
      const neighbour = newBuilds()
      const blobId = await builds.upload('of ann')
      const announced = await builds.announce('only announced')
      assert.ok(announced.outcome === 'announced')
      const model = (id: string) => ({ models: [{ type: 'vae', filename: 'v.safetensors', blobId: id }] })
      const build = await builds.build(model(blobId))
      for (const definition of [
        model('blob-none'),
        model(announced.blob.id),
        { customNodes: [{ name: 'p', blobId }] },
      ]) {
        const saved = await store().builds.change(builds.accountId, build.id, {
          ...{ definition, name: 'other', description: null, expected: null, at: START },
        })
        assert.equal(saved.outcome, 'missing_blobs')
        assert.equal(saved.blobIds.length, 1)
      }
      assert.deepEqual(await store().builds.find(builds.accountId, build.id), build)
      const stolen = await store().builds.create(neighbour.newBuild(model(blobId)), 10)
      assert.deepEqual(stolen, { outcome: 'missing_blobs', blobIds: [blobId] })
    })

    test('the same content is the same release, and another one has the next number', async () => {
      const builds = newBuilds()
      const build = await builds.build({ baseComfyVersion: 'v1', baseImage: 'cpu' })
      const cuts = await Promise.all([builds.cut(build), builds.cut(build), builds.cut(build, [CPU, NVIDIA])])
      assert.equal(new Set(cuts.map(({ release }) => release.id)).size, 1)
      assert.equal(cuts.filter(({ isNew }) => isNew).length, 1)
      const [{ release }] = cuts
      assert.equal(release.version, 1)
      const found = await builds.release(release.id)
      assert.deepEqual(found?.definition, build.definition)
      assert.deepEqual(
        found?.artifacts.map(({ target }) => target),
        [CPU, NVIDIA],
      )
      assert.ok(found?.artifacts.every(({ status }) => status === 'queued'))
      const changed = await builds.save(build, { baseComfyVersion: 'v2' })
      assert.equal((await builds.cut(changed)).release.version, 2)
      // Its keys in another order are no other content.
      const back = await builds.save(changed, { baseImage: 'cpu', baseComfyVersion: 'v1' })
      const again = await builds.cut(back)
      assert.deepEqual([again.release.id, again.isNew, again.queued], [release.id, false, 0])
      assert.deepEqual(await builds.tryCut(build), { outcome: 'changed' })
      const listed = await store().builds.listReleases(builds.accountId, build.id, { before: null, limit: 10 })
      assert.deepEqual(
        listed.map(({ version, artifacts }) => [version, artifacts.length]),
        [
          [2, 1],
          [1, 2],
        ],
      )
      const older = await store().builds.listReleases(builds.accountId, build.id, { before: 2, limit: 10 })
      assert.deepEqual(
        older.map(({ version }) => version),
        [1],
      )
      assert.deepEqual(await store().builds.listReleases(randomUUID(), build.id, { before: null, limit: 10 }), [])
      assert.equal(await store().builds.findRelease(randomUUID(), release.id), null)
      assert.equal(releaseStatus(listed[0].artifacts), 'queued')
      assert.equal(isDeployable(listed[0]), false)
    })

    test('a build has as many releases, and an account as many that are not made yet, as it may', async () => {
      const builds = newBuilds()
      const build = await builds.build({ baseComfyVersion: 'v1' })
      assert.deepEqual(await builds.tryCut(build, [CPU, NVIDIA], { unfinished: 1 }), { outcome: 'too_many_unfinished' })
      assert.deepEqual(await store().builds.listReleases(builds.accountId, build.id, { before: null, limit: 9 }), [])
      await builds.cut(build)
      const next = await builds.save(build, { baseComfyVersion: 'v2' })
      assert.deepEqual(await builds.tryCut(next, [CPU], { releases: 1 }), { outcome: 'too_many_releases' })
      assert.deepEqual(await builds.tryCut({ ...next, id: 'bld-none' }), { outcome: 'no_build' })
      assert.equal((await builds.cut(next)).release.version, 2)
    })

    test('a removed release is gone with its log, its number is not given again, and cut again it is another', async () => {
      const builds = newBuilds()
      const build = await builds.build({ baseComfyVersion: 'v1' })
      const { release } = await builds.cut(build)
      assert.equal(await store().builds.removeRelease(randomUUID(), release.id, START), false)
      assert.equal(await store().builds.removeRelease(builds.accountId, release.id, START), true)
      assert.equal(await store().builds.removeRelease(builds.accountId, release.id, START), false)
      assert.equal(await builds.release(release.id), null)
      assert.equal(await store().builds.readLog(builds.accountId, release.artifacts[0].id), null)
      const found = await store().builds.find(builds.accountId, build.id)
      assert.ok(found !== null)
      const again = (await builds.cut(found)).release
      assert.equal(again.version, 2)
      assert.notEqual(again.id, release.id)
    })

    test('a removed build takes its releases along', async () => {
      const builds = newBuilds()
      const build = await builds.build()
      const { release } = await builds.cut(build)
      assert.equal(await store().builds.remove(randomUUID(), build.id, START), false)
      assert.equal(await store().builds.remove(builds.accountId, build.id, START), true)
      assert.equal(await store().builds.remove(builds.accountId, build.id, START), false)
      assert.equal(await store().builds.find(builds.accountId, build.id), null)
      assert.equal(await builds.release(release.id), null)
    })
  })

  describe('uploaded files of builds', () => {
    const store = shareStore(opener)
    const newBuilds = () => new Builds(store())

    test('the same bytes of the same kind are one file of the account', async () => {
      const builds = newBuilds()
      const [first, second] = [await builds.announce('x'), await builds.announce('x')]
      assert.ok(first.outcome === 'announced' && second.outcome === 'announced')
      assert.equal(first.blob.id, second.blob.id)
      assert.equal(first.blob.uploadedAt, null)
      assert.equal(await store().buildBlobs.complete(first.blob.id, hashOf('x'), at(5)), true)
      assert.equal(await store().buildBlobs.complete(first.blob.id, hashOf('y'), at(6)), false)
      const third = await builds.announce('x')
      assert.ok(third.outcome === 'announced')
      assert.deepEqual([third.blob.id, third.blob.uploadedAt, third.blob.hash], [first.blob.id, at(5), hashOf('x')])
      assert.deepEqual(await store().buildBlobs.findById(first.blob.id), third.blob)
      assert.deepEqual(await store().buildBlobs.find(builds.accountId, first.blob.id), third.blob)
      assert.equal(await store().buildBlobs.find(randomUUID(), first.blob.id), null)
      const other = await builds.announce('x', { kind: 'node_zip' })
      assert.ok(other.outcome === 'announced' && other.blob.id !== first.blob.id)
      const neighbour = await newBuilds().announce('x')
      assert.ok(neighbour.outcome === 'announced' && neighbour.blob.uploadedAt === null)
    })

    test('files that are there are listed by kind, and found by name', async () => {
      const builds = newBuilds()
      const model = await builds.upload('m')
      const pack = await builds.upload('p', { kind: 'node_zip' })
      await builds.announce('later')
      const list = async (kind: 'model' | 'node_zip' | null) =>
        (await store().buildBlobs.list(builds.accountId, { kind, limit: 10 })).map(({ id }) => id)
      assert.deepEqual(await list('model'), [model])
      assert.deepEqual((await list(null)).sort(), [model, pack].sort())
      const named = await store().buildBlobs.findNamed(builds.accountId, 'model', ['m.bin', 'p.bin', 'later.bin'])
      assert.deepEqual(
        named.map(({ id }) => id),
        [model],
      )
    })

    test('an account has as many files and bytes as it may, announced ones included', async () => {
      const builds = newBuilds()
      const outcomes = await Promise.all(['aa', 'bb', 'cc'].map((text) => builds.announce(text, { count: 2 })))
      assert.deepEqual(outcomes.map(({ outcome }) => outcome).sort(), ['announced', 'announced', 'too_many'])
      assert.equal((await builds.announce('dddd', { bytes: 7 })).outcome, 'no_room')
      assert.equal((await builds.announce('ddd', { bytes: 7 })).outcome, 'announced')
    })

    test('what no build and no release names goes after its time, and what one names stays', async () => {
      const builds = newBuilds()
      const [named, released, loose] = [await builds.upload('n'), await builds.upload('r'), await builds.upload('l')]
      const announced = await builds.announce('never sent')
      assert.ok(announced.outcome === 'announced')
      const model = (blobId: string) => ({ models: [{ type: 'vae', filename: 'v.bin', blobId }] })
      const build = await builds.build(model(released))
      const { release } = await builds.cut(build)
      await builds.save(build, model(named))
      const sweep = (afterMs: number) =>
        store().buildBlobs.removeUnused({
          ...{ announcedBefore: at(afterMs), unusedBefore: at(afterMs - DAY_MS), now: at(afterMs), limit: 100 },
        })
      const left = async () =>
        (
          await Promise.all([named, released, loose, announced.blob.id].map((id) => store().buildBlobs.findById(id)))
        ).map((blob) => blob !== null)
      await sweep(1)
      assert.deepEqual(await left(), [true, true, true, false])
      await sweep(DAY_MS + 1)
      assert.deepEqual(await left(), [true, true, false, false])
      // Used until the release went, so it stays for its time from then on.
      await store().builds.removeRelease(builds.accountId, release.id, at(2 * DAY_MS))
      await sweep(3 * DAY_MS)
      assert.deepEqual(await left(), [true, true, false, false])
      await sweep(3 * DAY_MS + 1)
      assert.deepEqual(await left(), [true, false, false, false])
    })
  })
}

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { systemClock } from '../../../lib/clock.ts'
import { silentLog } from '../../../lib/log.ts'
import { type BuildLoopDeps, createBuildLoop } from '../../../src/domain/environments/build-loop.ts'
import {
  type Builder,
  BuilderLacks,
  BuildFailure,
  type BuildRequest,
} from '../../../src/domain/environments/builder.ts'
import { storeUnavailable } from '../../../src/domain/errors.ts'
import { sqliteOpener } from '../../adapters/store/sqlite/temporary-store.ts'
import { BUILT, Builds, CPU, LOCK } from '../../contracts/environments/build-rig.ts'
import { withStore } from '../../contracts/store-under-test.ts'
import { CPU as HERE, openBuildBench, withoutUv } from '../../support/builds/bench.ts'
import { packFiles, zipOf } from '../../support/builds/packages.ts'
import { waitUntil } from '../../support/wait-until.ts'

const QUICK = {
  lookEveryMs: 5,
  announceEveryMs: 20,
  leaseMs: 30_000,
  tidyEveryMs: 5,
  keepYoungMs: 0,
  writeLogEveryMs: 1,
}

interface FakeBuilder extends Builder {
  readonly asked: BuildRequest[]
  /** What it was asked to tidy by, the newest last. */
  readonly kept: ((releaseId: string) => Promise<boolean>)[]
}

function fakeBuilder(build: (request: BuildRequest) => Promise<typeof BUILT>): FakeBuilder {
  const asked: BuildRequest[] = []
  const kept: FakeBuilder['kept'][number][] = []
  return {
    ...{ asked, kept, targets: [CPU], baseImages: [] },
    build(request) {
      asked.push(request)
      return build(request)
    },
    find: async () => null,
    async keepOnly(isKept) {
      kept.push(isKept)
      return 0
    },
  }
}

function loopOver({ store }: Builds, builder: Builder, more: Partial<BuildLoopDeps> = {}) {
  const loop = createBuildLoop({
    ...{
      queue: store.artifacts,
      usedReleases: async () => [],
      maxAccountBytes: 2 ** 40,
      builder,
      builderId: randomUUID(),
      newId: randomUUID,
      clock: systemClock,
      log: silentLog,
    },
    ...{ openBlob: () => assert.fail(), isAlone: false, times: QUICK, ...more },
  })
  loop.start()
  return loop
}

const withBuilds = (body: (builds: Builds) => Promise<void>) =>
  withStore(sqliteOpener, (store) => body(new Builds(store)))

async function artifactOf(builds: Builds, releaseId: string) {
  return (await builds.release(releaseId))?.artifacts[0]
}

test('what is queued is made with its log and its lock, and its folder is kept', () =>
  withBuilds(async (builds) => {
    const { release } = await builds.cut(await builds.build({ baseComfyVersion: 'v1' }))
    const builder = fakeBuilder(async ({ say, note }) => {
      say('one')
      say('two')
      await note(LOCK)
      return BUILT
    })
    await using _loop = loopOver(builds, builder)
    await waitUntil(async () => (await artifactOf(builds, release.id))?.status === 'ready')
    const artifact = await artifactOf(builds, release.id)
    assert.deepEqual([artifact?.lock, artifact?.classes, artifact?.sizeBytes], [LOCK, BUILT.classes, BUILT.sizeBytes])
    const log = await builds.store.builds.readLog(builds.accountId, artifact?.id ?? '')
    assert.equal(log?.text, 'one\ntwo\n')
    await waitUntil(async () => (await builder.kept.at(-1)?.(release.id)) === true)
    await waitUntil(async () => (await builds.store.artifacts.listBuilders(new Date())).length === 1)
  }))

test('what a builder lacks another one may have: it makes the release, and the first takes no more for a while', () =>
  withBuilds(async (builds) => {
    const cut = async (version: string) => (await builds.cut(await builds.build({ baseComfyVersion: version }))).release
    const full = fakeBuilder(async () => {
      throw new BuilderLacks('start', 'the disk of the builder is full')
    })
    const other = { id: 'other', targets: [CPU], baseImages: [], until: new Date(Date.now() + 3_600_000) }
    await builds.store.artifacts.announce(other)
    const [one, two] = [await cut('v1'), await cut('v2')]
    await using _full = loopOver(builds, full)
    await waitUntil(() => full.asked.length === 1)
    const well = fakeBuilder(async () => BUILT)
    await using _well = loopOver(builds, well)
    for (const { id } of [one, two]) await waitUntil(async () => (await artifactOf(builds, id))?.status === 'ready')
    assert.deepEqual([full.asked.length, well.asked.length], [1, 2])
  }))

test('a builder that is alone says what it lacks', () =>
  withBuilds(async (builds) => {
    const { release } = await builds.cut(await builds.build({ baseComfyVersion: 'v1' }))
    const full = fakeBuilder(async () => {
      throw new BuilderLacks('start', 'the disk of the builder is full')
    })
    await using _loop = loopOver(builds, full)
    await waitUntil(async () => (await artifactOf(builds, release.id))?.status === 'failed')
    assert.equal((await artifactOf(builds, release.id))?.failureReason, 'start: the disk of the builder is full')
  }))

test('a store that is away for a moment costs no build', () =>
  withBuilds(async (builds) => {
    const { artifacts } = builds.store
    const awayOnce = <Arguments extends unknown[]>(act: (...given: Arguments) => Promise<boolean>) => {
      let isAway = true
      return async (...given: Arguments) => {
        if (!isAway) return act(...given)
        isAway = false
        throw storeUnavailable(new Error('away'))
      }
    }
    const queue = {
      ...artifacts,
      noteLock: awayOnce(artifacts.noteLock),
      succeed: awayOnce(artifacts.succeed),
      fail: awayOnce(artifacts.fail),
    }
    const { release: good } = await builds.cut(await builds.build({ baseComfyVersion: 'v1' }))
    const { release: bad } = await builds.cut(await builds.build({ baseComfyVersion: 'v2' }))
    const builder = fakeBuilder(async ({ definition, note }) => {
      await note(LOCK)
      if (definition.baseComfyVersion === 'v2') throw new BuildFailure('validate', 'it does not start')
      return BUILT
    })
    await using _loop = loopOver(builds, builder, { queue })
    await waitUntil(async () => (await artifactOf(builds, good.id))?.status === 'ready')
    await waitUntil(async () => (await artifactOf(builds, bad.id))?.status === 'failed')
    assert.equal((await artifactOf(builds, bad.id))?.failureReason, 'validate: it does not start')
    assert.equal(builder.asked.length, 2)
  }))

test('a release that waits for its first deployment keeps its folder for a while, one that is used for ever', () =>
  withBuilds(async (builds) => {
    const [fresh, used, unused] = [
      fakeBuilder(async () => BUILT),
      fakeBuilder(async () => BUILT),
      fakeBuilder(async () => BUILT),
    ]
    const { release } = await builds.cut(await builds.build({ baseComfyVersion: 'v1' }))
    const judge = async (builder: FakeBuilder, more: Partial<BuildLoopDeps>) => {
      await using _loop = loopOver(builds, builder, more)
      await waitUntil(async () => (await artifactOf(builds, release.id))?.status === 'ready')
      const before = builder.kept.length
      await waitUntil(() => builder.kept.length > before)
      return builder.kept.at(-1)?.(release.id)
    }
    const times = { ...QUICK, keepUnusedMs: 0 }
    assert.equal(await judge(fresh, {}), true)
    assert.equal(await judge(used, { times, usedReleases: async () => [release.id] }), true)
    assert.equal(await judge(unused, { times }), false)
  }))

test('a build is told what its account has already, as far as no tidying would remove it', () =>
  withBuilds(async (builds) => {
    const other = new Builds(builds.store)
    const models = [{ type: 'vae', filename: 'v', sha256: 'f'.repeat(64), sizeBytes: 70, from: 'blob' as const }]
    const builder = fakeBuilder(async () => ({ ...BUILT, lock: { ...LOCK, models } }))
    const used: string[] = []
    const make = async (of: Builds, version: string, more: Partial<BuildLoopDeps> = {}) => {
      await using _loop = loopOver(of, builder, { usedReleases: async () => used, maxAccountBytes: 5, ...more })
      const { release } = await of.cut(await of.build({ baseComfyVersion: version }))
      await waitUntil(async () => (await artifactOf(of, release.id))?.status === 'ready')
      return release.id
    }
    const held = () => builder.asked.at(-1)?.quota
    const first = await make(builds, 'v1')
    assert.deepEqual(held(), { maxBytes: 5, held: [] })
    await make(other, 'v1')
    assert.deepEqual(held()?.held, [], 'another account’s')
    await make(builds, 'v2')
    assert.deepEqual(held()?.held, [{ releaseId: first, sizeBytes: BUILT.sizeBytes, models }])
    const times = { ...QUICK, keepUnusedMs: 0 }
    await make(builds, 'v3', { times })
    assert.deepEqual(held()?.held, [], 'nothing uses them any more')
    used.push(first)
    await make(builds, 'v4', { times })
    assert.deepEqual(
      held()?.held.map(({ releaseId }) => releaseId),
      [first],
    )
  }))

test('two builders at once never make the same artifact at the same time', () =>
  withBuilds(async (builds) => {
    const active = new Map<string, number>()
    let most = 0
    const made: string[] = []
    const build = async ({ releaseId }: BuildRequest) => {
      const now = (active.get(releaseId) ?? 0) + 1
      most = Math.max(most, now)
      active.set(releaseId, now)
      await new Promise((resolve) => setImmediate(resolve))
      active.set(releaseId, now - 1)
      made.push(releaseId)
      return BUILT
    }
    const releases: string[] = []
    for (let index = 0; index < 8; index++) {
      const { release } = await builds.cut(await builds.build({ baseComfyVersion: `v${index}` }))
      releases.push(release.id)
    }
    await using _one = loopOver(builds, fakeBuilder(build))
    await using _two = loopOver(builds, fakeBuilder(build))
    await waitUntil(() => made.length === releases.length)
    assert.deepEqual(made.toSorted(), releases.toSorted())
    assert.equal(most, 1)
  }))

test('a failure is told as it is, and a fault of the builder without its details', () =>
  withBuilds(async (builds) => {
    const reasons = [new BuildFailure('freeze', 'pack x: do this'), new Error('secret inner words')]
    const builder = fakeBuilder(async () => {
      throw reasons.shift()
    })
    const first = await builds.cut(await builds.build({ baseComfyVersion: 'v1' }))
    await using _loop = loopOver(builds, builder)
    await waitUntil(async () => (await artifactOf(builds, first.release.id))?.status === 'failed')
    assert.equal((await artifactOf(builds, first.release.id))?.failureReason, 'freeze: pack x: do this')
    const second = await builds.cut(await builds.build({ baseComfyVersion: 'v2' }))
    await waitUntil(async () => (await artifactOf(builds, second.release.id))?.status === 'failed')
    assert.match(
      (await artifactOf(builds, second.release.id))?.failureReason ?? '',
      /^start: the builder itself failed; the log of the service/,
    )
  }))

function untilAborted({ signal }: BuildRequest): Promise<never> {
  return new Promise((_resolve, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
  )
}

test('a builder that loses its lease stops at once and says nothing more', () =>
  withBuilds(async (builds) => {
    const { release } = await builds.cut(await builds.build())
    const ended = Promise.withResolvers<void>()
    const builder = fakeBuilder((request) => untilAborted(request).finally(ended.resolve))
    await using _loop = loopOver(builds, builder, { times: { ...QUICK, leaseMs: 60 } })
    await waitUntil(() => builder.asked.length === 1)
    await builds.store.builds.removeRelease(builds.accountId, release.id, new Date())
    await ended.promise
    assert.equal(await builds.release(release.id), null)
  }))

test('a service that ends gives its build back, and the next one makes it from the same lock', () =>
  withBuilds(async (builds) => {
    const { release } = await builds.cut(await builds.build())
    const builder = fakeBuilder(async (request) => {
      await request.note(LOCK)
      return untilAborted(request)
    })
    const loop = loopOver(builds, builder)
    await waitUntil(async () => (await artifactOf(builds, release.id))?.lock !== null)
    await loop[Symbol.asyncDispose]()
    assert.equal((await artifactOf(builds, release.id))?.status, 'queued')
    const next = fakeBuilder(async () => BUILT)
    await using _next = loopOver(builds, next)
    await waitUntil(async () => (await artifactOf(builds, release.id))?.status === 'ready')
    assert.deepEqual(next.asked[0]?.lock, LOCK)
  }))

test('the real builder makes what an account has cut', { skip: withoutUv }, () =>
  withBuilds(async (builds) => {
    await using bench = await openBuildBench()
    const blobId = await builds.upload('pack', { kind: 'node_zip' })
    bench.blobs.set(blobId, zipOf(packFiles('FromQueue')))
    const definition = { baseComfyVersion: 'v0.3.40', customNodes: [{ name: 'queued', blobId }] }
    const { release } = await builds.cut(await builds.build(definition), [HERE])
    const openBlob = async (_account: string, id: string) => Readable.from([bench.blobs.get(id) ?? assert.fail()])
    await using _loop = loopOver(builds, bench.builder, { openBlob })
    await waitUntil(async () => ['ready', 'failed'].includes((await artifactOf(builds, release.id))?.status ?? ''))
    const artifact = await artifactOf(builds, release.id)
    assert.equal(artifact?.failureReason, null)
    assert.deepEqual(artifact?.classes, { queued: ['FromQueue'] })
    assert.ok(await bench.builder.find(release.id, HERE))
    // A release that was removed takes its folder along.
    await builds.store.builds.removeRelease(builds.accountId, release.id, new Date())
    await waitUntil(async () => (await bench.builder.find(release.id, HERE)) === null)
  }),
)

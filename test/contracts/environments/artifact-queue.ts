/** How every store hands artifacts to builders. Each test has a queue of its own, because builders take what any account has queued. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import {
  type ArtifactLease,
  type ClaimedArtifact,
  MAX_LOG_BYTES,
} from '../../../src/domain/environments/artifact-queue.ts'
import type { BuildTarget } from '../../../src/domain/environments/definition.ts'
import { at, START, type StoreOpener, type WholeStoreUnderTest, withStore } from '../store-under-test.ts'
import { BUILT, Builds, CPU, LOCK, NVIDIA } from './build-rig.ts'

async function claim({ store }: Builds, targets: readonly BuildTarget[] = [CPU, NVIDIA], afterMs = 0) {
  const leaseId = randomUUID()
  const query = { leaseId, builder: 'here', targets, now: at(afterMs), until: at(afterMs + 1000) }
  const claimed = await store.artifacts.claim(query)
  return claimed === null ? null : { ...claimed, lease: { artifactId: claimed.artifact.id, leaseId } }
}

async function mustClaim(
  builds: Builds,
  targets?: readonly BuildTarget[],
  afterMs?: number,
): Promise<ClaimedArtifact & { readonly lease: ArtifactLease }> {
  const claimed = await claim(builds, targets, afterMs)
  assert.ok(claimed !== null)
  return claimed
}

export function testArtifactQueue(opener: StoreOpener<WholeStoreUnderTest>): void {
  describe('artifacts that builders make', () => {
    const queueTest = (name: string, body: (builds: Builds) => Promise<void>) =>
      test(name, () => withStore(opener, (store) => body(new Builds(store))))

    queueTest('each is claimed once, for the targets that the builder has, with all that it needs', async (builds) => {
      const build = await builds.build({ baseComfyVersion: 'v1' })
      const { release } = await builds.cut(build, [CPU, NVIDIA])
      assert.equal(await claim(builds, [{ os: 'darwin', gpu: 'apple' }]), null)
      const claims = await Promise.all(Array.from({ length: 4 }, () => claim(builds, [NVIDIA])))
      const [only, ...others] = claims.filter((each) => each !== null)
      assert.equal(others.length, 0)
      assert.deepEqual([only.release.id, only.release.definition], [release.id, build.definition])
      const { target, status, attempts, startedAt } = only.artifact
      assert.deepEqual(
        { target, status, attempts, startedAt },
        { target: NVIDIA, status: 'building', attempts: 1, startedAt: START },
      )
      assert.equal(only.lock, null)
      assert.equal((await mustClaim(builds)).artifact.target.gpu, 'cpu')
      assert.equal(await claim(builds), null)
    })

    queueTest('accounts take turns, each in the order in which it cut', async (builds) => {
      const neighbour = new Builds(builds.store)
      for (const version of ['v1', 'v2']) await builds.cut(await builds.build({ baseComfyVersion: version }))
      await neighbour.cut(await neighbour.build())
      const owners = [await mustClaim(builds), await mustClaim(builds), await mustClaim(builds)]
      const [first] = owners
      assert.equal(owners[1].release.accountId === first.release.accountId, false)
      assert.equal(owners.filter(({ release }) => release.accountId === builds.accountId).length, 2)
    })

    queueTest('what was resolved for one target is given with the others', async (builds) => {
      const { release } = await builds.cut(await builds.build(), [CPU, NVIDIA])
      const first = await mustClaim(builds, [CPU])
      assert.equal(await builds.store.artifacts.noteLock(first.lease, LOCK), true)
      assert.equal(await builds.store.artifacts.giveBack(first.lease), true)
      const again = await mustClaim(builds, [CPU])
      assert.deepEqual([again.lock, again.artifact.attempts], [LOCK, 1])
      assert.deepEqual((await mustClaim(builds, [NVIDIA])).lock, LOCK)
      assert.equal(await builds.store.artifacts.succeed(again.lease, BUILT, at(5)), true)
      const [made] = (await builds.release(release.id))?.artifacts ?? []
      assert.deepEqual(
        [made.status, made.finishedAt, made.lock, made.archiveSha256, made.sizeBytes, made.classes],
        ['ready', at(5), LOCK, BUILT.archiveSha256, BUILT.sizeBytes, BUILT.classes],
      )
      const ready = { releaseId: release.id, target: CPU, sizeBytes: BUILT.sizeBytes, finishedAt: at(5) }
      assert.deepEqual(await builds.store.artifacts.listReady(), [ready])
    })

    queueTest(
      'without its lease nobody writes: when it ended, was lost, or the release was removed',
      async (builds) => {
        const { artifacts } = builds.store
        const refuses = async (lease: ArtifactLease) => {
          assert.equal(await artifacts.renew(lease, at(9000)), false)
          assert.equal(await artifacts.appendLog(lease, 'late'), false)
          assert.equal(await artifacts.noteLock(lease, LOCK), false)
          assert.equal(await artifacts.succeed(lease, BUILT, START), false)
          assert.equal(await artifacts.fail(lease, 'assemble: late', START), false)
          assert.equal(await artifacts.giveBack(lease), false)
        }
        const { release } = await builds.cut(await builds.build())
        const lost = await mustClaim(builds)
        await refuses({ ...lost.lease, leaseId: randomUUID() })
        assert.equal(await artifacts.requeueLapsed({ now: at(1000), maxAttempts: 3, isAlone: false }), 1)
        await refuses(lost.lease)
        const second = await mustClaim(builds)
        assert.equal(second.artifact.attempts, 2)
        assert.equal(await artifacts.fail(second.lease, 'assemble: no\0such wheel', at(7)), true)
        await refuses(second.lease)
        const [failed] = (await builds.release(release.id))?.artifacts ?? []
        assert.deepEqual([failed.status, failed.failureReason], ['failed', 'assemble: nosuch wheel'])
        await builds.cut((await builds.store.builds.find(builds.accountId, release.buildId)) ?? assert.fail())
        const third = await mustClaim(builds)
        assert.deepEqual([third.artifact.attempts, third.artifact.failureReason], [1, null])
        await builds.store.builds.removeRelease(builds.accountId, release.id, START)
        await refuses(third.lease)
      },
    )

    queueTest(
      'a lease is renewed; one that lapses too often has failed; alone, all leases are of nobody',
      async (builds) => {
        const { artifacts } = builds.store
        const { release } = await builds.cut(await builds.build())
        const lapse = (now: Date, isAlone = false) => artifacts.requeueLapsed({ now, maxAttempts: 2, isAlone })
        const first = await mustClaim(builds)
        assert.equal(await artifacts.renew(first.lease, at(5000)), true)
        assert.equal(await lapse(at(4999)), 0)
        assert.equal(await lapse(START, true), 1)
        await mustClaim(builds)
        assert.equal(await lapse(at(1000)), 1)
        const [failed] = (await builds.release(release.id))?.artifacts ?? []
        assert.equal(failed.status, 'failed')
        assert.match(failed.failureReason ?? '', /^start: /)
        assert.equal(await claim(builds), null)
      },
    )

    queueTest('what one builder cannot make another one gets, three times at most', async (builds) => {
      const { artifacts } = builds.store
      const announce = (id: string, targets: readonly BuildTarget[]) =>
        artifacts.announce({ id, targets, baseImages: [], until: at(5000) })
      await announce('here', [CPU])
      await announce('elsewhere', [NVIDIA])
      const { release } = await builds.cut(await builds.build())
      const failure = { reason: 'start: the disk is full', at: START, maxAttempts: 3 }
      const state = async () => {
        const [{ status, failureReason }] = (await builds.release(release.id))?.artifacts ?? []
        return [status, failureReason]
      }
      const alone = await mustClaim(builds)
      assert.equal(await artifacts.passOn({ ...alone.lease, leaseId: randomUUID() }, failure), 'lost')
      assert.equal(await artifacts.passOn(alone.lease, failure), 'failed')
      assert.deepEqual(await state(), ['failed', failure.reason])
      assert.equal(await artifacts.passOn(alone.lease, failure), 'lost')

      await announce('there', [NVIDIA, CPU])
      await builds.cut((await builds.store.builds.find(builds.accountId, release.buildId)) ?? assert.fail())
      for (const outcome of ['passed_on', 'passed_on', 'failed']) {
        const { lease } = await mustClaim(builds)
        assert.equal(await artifacts.passOn(lease, failure), outcome)
      }
      assert.deepEqual(await state(), ['failed', failure.reason])
    })

    queueTest('what a machine that joined builds goes on when the service is alone and starts anew', async (builds) => {
      const { artifacts } = builds.store
      await builds.cut(await builds.build())
      const leaseId = `abcdefghijkl.${randomUUID()}`
      const query = { leaseId, builder: 'there', targets: [CPU, NVIDIA], now: START, until: at(1000) }
      const claimed = await artifacts.claim(query)
      assert.ok(claimed !== null)
      const lapse = (now: Date) => artifacts.requeueLapsed({ now, maxAttempts: 3, isAlone: true })
      assert.equal(await lapse(at(999)), 0)
      assert.equal(await artifacts.renew({ artifactId: claimed.artifact.id, leaseId }, at(2000)), true)
      assert.equal(await lapse(at(2000)), 1)
    })

    queueTest(
      'what is resolved for a release that was never made is forgotten when it is cut again',
      async (builds) => {
        const build = await builds.build()
        await builds.cut(build)
        const first = await mustClaim(builds)
        await builds.store.artifacts.noteLock(first.lease, LOCK)
        await builds.store.artifacts.fail(first.lease, 'validate: it does not start', START)
        assert.equal((await builds.cut(build)).queued, 1)
        const second = await mustClaim(builds)
        assert.equal(second.lock, null)
        await builds.store.artifacts.succeed(second.lease, BUILT, START)
        assert.equal((await builds.cut(build, [CPU, NVIDIA])).queued, 1)
        const other = await mustClaim(builds)
        await builds.store.artifacts.fail(other.lease, 'assemble: no room', START)
        assert.equal((await builds.cut(build, [NVIDIA])).queued, 1)
        assert.deepEqual((await mustClaim(builds)).lock, LOCK)
      },
    )

    queueTest('what is ready is made again, exactly, when its folder is gone', async (builds) => {
      await builds.cut(await builds.build())
      const first = await mustClaim(builds)
      assert.equal(await builds.store.artifacts.requeue(first.artifact.id, START), false)
      await builds.store.artifacts.succeed(first.lease, BUILT, START)
      assert.equal(await builds.store.artifacts.requeue(first.artifact.id, START), true)
      assert.deepEqual((await mustClaim(builds)).lock, LOCK)
    })

    queueTest('what an account holds is what was finished lately or is named, and nobody else’s', async (builds) => {
      const { artifacts } = builds.store
      const models = [{ type: 'vae', filename: 'v', sha256: 'f'.repeat(64), sizeBytes: 7, from: 'blob' as const }]
      const made = async (version: string, afterMs: number, of = builds) => {
        const { release } = await of.cut(await of.build({ baseComfyVersion: version }))
        const { lease } = await mustClaim(of)
        await artifacts.succeed(lease, { ...BUILT, lock: { ...LOCK, models } }, at(afterMs))
        return { releaseId: release.id, sizeBytes: BUILT.sizeBytes, models }
      }
      const [old, older, young] = [await made('v1', 2), await made('v2', 1), await made('v3', 10)]
      await made('v1', 10, new Builds(builds.store))
      await builds.cut(await builds.build({ baseComfyVersion: 'v4' }))
      const held = async (...releaseIds: string[]) =>
        new Set(await artifacts.listHeld({ accountId: builds.accountId, finishedAfter: at(5), releaseIds }))
      assert.deepEqual(await held(), new Set([young]))
      assert.deepEqual(await held(old.releaseId, 'of-nobody'), new Set([old, young]))
      assert.deepEqual(await held(old.releaseId, older.releaseId), new Set([old, older, young]))
    })

    queueTest('a log is read as it was written, grows over attempts, and ends where it is too long', async (builds) => {
      const { artifacts } = builds.store
      await builds.cut(await builds.build())
      const { lease, artifact } = await mustClaim(builds)
      const read = () => builds.store.builds.readLog(builds.accountId, artifact.id)
      assert.deepEqual(await read(), { text: '', isTruncated: false })
      await artifacts.appendLog(lease, 'start\n')
      await artifacts.appendLog(lease, '')
      await artifacts.appendLog(lease, 'naïve \ud800\0text\n')
      assert.deepEqual(await read(), { text: 'start\nnaïve \ufffdtext\n', isTruncated: false })
      await artifacts.giveBack(lease)
      const { lease: next } = await mustClaim(builds)
      await artifacts.appendLog(next, 'again\n')
      const before = (await read())?.text ?? ''
      assert.ok(before.endsWith('text\nagain\n'))
      await artifacts.appendLog(next, 'ü'.repeat(MAX_LOG_BYTES / 2))
      await artifacts.appendLog(next, 'more')
      const after = await read()
      assert.ok(after?.text.startsWith(before))
      assert.equal(after?.isTruncated, true)
      assert.match(after?.text.slice(-80) ?? '', /ü\n\[the rest of this log was dropped: it is too long\]\n$/)
      assert.equal(await builds.store.builds.readLog(randomUUID(), artifact.id), null)
    })

    queueTest('builders are known for as long as they say', async ({ store: { artifacts } }) => {
      const image = { id: 'cpu-py312', label: 'CPU', python: '3.12', torch: 'cpu', targets: [CPU], isDefault: true }
      const here = { id: 'here', targets: [CPU], baseImages: [image], until: at(1000) }
      await artifacts.announce(here)
      await artifacts.announce({ ...here, id: 'there', targets: [NVIDIA], until: at(2000) })
      const idsAt = async (afterMs: number) => (await artifacts.listBuilders(at(afterMs))).map(({ id }) => id)
      assert.deepEqual((await artifacts.listBuilders(START))[0], here)
      assert.deepEqual(await idsAt(999), ['here', 'there'])
      assert.deepEqual(await idsAt(1000), ['there'])
      await artifacts.announce({ ...here, until: at(3000) })
      assert.deepEqual(await idsAt(1000), ['here', 'there'])
      await artifacts.withdraw('there')
      await artifacts.requeueLapsed({ now: at(1000), maxAttempts: 3, isAlone: false })
      assert.deepEqual(await idsAt(0), ['here'])
    })
  })
}

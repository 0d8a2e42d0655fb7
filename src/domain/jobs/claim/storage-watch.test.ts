/** One job for which there is no room must not hold the others, and fails in the end; a disk with no room at all holds them all. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../../../../lib/log.ts'
import { seededRandom } from '../../../../test/support/seeded-random.ts'
import { createStorageWatch } from './storage-watch.ts'

const MIB = 1024 ** 2
const MAX_LOOKS = 11

/** Resolves with how often the disk was asked, as soon as engines get work again. */
function createDisk(freeBytes: () => number) {
  let looks = 0
  let goesOn = Promise.withResolvers<number>()
  const watch = createStorageWatch({
    fleet: {
      hold(reason) {
        if (reason === null) goesOn.resolve(looks)
      },
    },
    hasRoom: async (bytes) => {
      looks++
      if (looks > 100) goesOn.reject(new Error('the engines are held for ever'))
      return freeBytes() >= bytes
    },
    log: silentLog,
    retryMs: 0,
  })
  return {
    watch,
    async refuse(jobId: string): Promise<{ readonly isFree: boolean; readonly looks: number }> {
      looks = 0
      goesOn = Promise.withResolvers()
      const isFree = watch.full(jobId)
      return { isFree, looks: await goesOn.promise }
    },
  }
}

test('a job that is too large for the room there is: the others go on after each refusal, and it spends its attempts soon', async () => {
  const random = seededRandom(7)
  for (const freeMib of [1, 900, ...Array.from({ length: 20 }, () => random.between(1, 1200))]) {
    const disk = createDisk(() => freeMib * MIB)
    await using _ = disk.watch
    const refusals: boolean[] = []
    for (let index = 0; index < 12; index++) {
      const { isFree, looks } = await disk.refuse('large')
      assert.ok(looks <= MAX_LOOKS, `${freeMib} MiB: ${looks} looks`)
      refusals.push(isFree)
    }
    assert.deepEqual(refusals.slice(5), Array(7).fill(false), 'from then on it spends attempts')
  }
})

test('where even a little finds no room, nothing is taken until it does', async () => {
  let asked = 0
  const disk = createDisk(() => (++asked > 20 ? MIB : MIB - 1))
  await using _ = disk.watch
  assert.deepEqual(await disk.refuse('any'), { isFree: true, looks: 21 })
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { silentLog } from '../../../lib/log.ts'
import { createWatchHub, type WatchSource } from './watch-hub.ts'

interface Thing {
  readonly version: number
  readonly position: number
  readonly isEnd?: boolean
}

/** Things whose reads are answered one by one, when the test says so, with what was true when they were asked. */
function createThings() {
  const now = new Map<string, Thing>()
  const pending: (() => void)[] = []
  let reads = 0
  const source: WatchSource<string, Thing> = {
    read(key) {
      reads++
      const seen = now.get(key) ?? null
      return new Promise((resolve) => pending.push(() => resolve(seen)))
    },
    topicOf: (key) => key,
    versionOf: (thing) => thing.version,
    isNews: (before, after) => before.position !== after.position,
    freshMs: () => null,
    isFinal: (thing) => thing.isEnd === true,
  }
  return {
    source,
    now,
    reads: () => reads,
    put: (key: string, version: number, position = 0) => void now.set(key, { version, position }),
    answerOne: () => pending.shift()?.(),
    async settle() {
      for (let idle = 0; idle < 5; idle++) {
        while (pending.length > 0) {
          pending.shift()?.()
          await turn()
          idle = 0
        }
        await turn()
      }
    },
  }
}

function createWatcher() {
  const seen: Thing[] = []
  let gone = 0
  return {
    seen,
    versions: () => seen.map((thing) => thing.version),
    goneCount: () => gone,
    onSnapshot: (thing: Thing) => void seen.push(thing),
    onGone: () => {
      gone++
    },
  }
}

function open() {
  const things = createThings()
  const hub = createWatchHub(things.source, { log: silentLog, tickMs: 1_000_000 })
  return { things, hub }
}

test('a change during the first read is not missed', async () => {
  const { things, hub } = open()
  things.put('a', 1)
  const watcher = createWatcher()
  const watching = hub.watch('a', watcher)
  things.put('a', 2)
  hub.notice('a', 2)
  await things.settle()
  const watch = await watching
  await turn()
  assert.deepEqual([watch?.snapshot.version, ...watcher.versions()].at(-1), 2)
  watch?.stop()
})

test('a notice costs one read, however many watch', async () => {
  const { things, hub } = open()
  things.put('a', 1)
  const watchers = Array.from({ length: 100 }, createWatcher)
  const watching = Promise.all(watchers.map((watcher) => hub.watch('a', watcher)))
  await things.settle()
  const watches = await watching
  await turn()
  assert.equal(things.reads(), 1)
  things.put('a', 2)
  hub.notice('a', 2)
  await things.settle()
  assert.equal(things.reads(), 2)
  for (const watcher of watchers) assert.deepEqual(watcher.versions(), [2])
  for (const watch of watches) watch?.stop()
  assert.equal(hub.topicCount(), 0)
})

test('the caller has its first snapshot before its watcher hears of a newer one', async () => {
  const { things, hub } = open()
  things.put('a', 1)
  const order: string[] = []
  const watching = hub.watch('a', {
    onSnapshot: (thing) => order.push(`news ${thing.version}`),
    onGone() {},
  })
  things.answerOne()
  // The newer version becomes known in the very turn in which the first read is answered.
  things.put('a', 2)
  hub.notice('a', 2)
  const settled = things.settle()
  const watch = await watching
  order.push(`first ${watch?.snapshot.version}`)
  await settled
  await turn()
  assert.match(order.join(), /^first (1,news 2|2)$/)
  watch?.stop()
})

test('nothing there is nothing to watch, and what is removed is said to be gone', async () => {
  const { things, hub } = open()
  const none = hub.watch('a', createWatcher())
  await things.settle()
  assert.equal(await none, null)
  assert.equal(hub.topicCount(), 0)
  things.put('a', 1)
  const watcher = createWatcher()
  const watching = hub.watch('a', watcher)
  await things.settle()
  await watching
  await turn()
  things.now.delete('a')
  hub.notice('a', 2)
  await things.settle()
  assert.equal(watcher.goneCount(), 1)
  assert.equal(hub.topicCount(), 0)
})

test('a read that fails is refused to the caller and tried again for those who watch', async () => {
  const things = createThings()
  let isBroken = true
  const source: WatchSource<string, Thing> = {
    ...things.source,
    read: async (key) => {
      if (isBroken) throw new Error('store away')
      return things.now.get(key) ?? null
    },
  }
  const hub = createWatchHub(source, { log: silentLog, tickMs: 5 })
  things.put('a', 1)
  await assert.rejects(hub.watch('a', createWatcher()), /store away/)
  assert.equal(hub.topicCount(), 0)
  isBroken = false
  const healed = Promise.withResolvers<Thing>()
  const watch = await hub.watch('a', { onSnapshot: healed.resolve, onGone() {} })
  isBroken = true
  things.put('a', 2)
  hub.notice('a', 2)
  await turn()
  isBroken = false
  assert.equal((await healed.promise).version, 2)
  watch?.stop()
})

test('a waiting record is read again from time to time, and watchers get only news', async () => {
  const things = createThings()
  const source: WatchSource<string, Thing> = {
    ...things.source,
    read: async (key) => things.now.get(key) ?? null,
    freshMs: () => 1,
  }
  const hub = createWatchHub(source, { log: silentLog, tickMs: 2 })
  things.put('a', 1, 7)
  const moved = Promise.withResolvers<Thing>()
  const told: number[] = []
  const watch = await hub.watch('a', {
    onSnapshot(thing) {
      told.push(thing.position)
      if (thing.position === 5) moved.resolve(thing)
    },
    onGone() {},
  })
  things.put('a', 1, 5)
  await moved.promise
  assert.deepEqual(told, [5])
  watch?.stop()
})

test('after a gap in the notices everything that can still change is read again', async () => {
  const things = createThings()
  const source: WatchSource<string, Thing> = {
    ...things.source,
    read: async (key) => things.now.get(key) ?? null,
    // Only a gap makes these due within the time of a test.
    freshMs: () => 1_000_000,
  }
  const hub = createWatchHub(source, { log: silentLog, tickMs: 2 })
  things.put('a', 1)
  const moved = Promise.withResolvers<Thing>()
  const watch = await hub.watch('a', { onSnapshot: moved.resolve, onGone() {} })
  things.put('a', 2)
  hub.noticeAll()
  assert.equal((await moved.promise).version, 2)
  watch?.stop()
})

for (const [what, version] of [
  ['a higher version', 3],
  ['the same version', 8],
] as const) {
  test(`an end is told although a crash of the store has undone ${what} that was seen`, async () => {
    const { things, hub } = open()
    things.put('a', 8)
    const watcher = createWatcher()
    const watching = hub.watch('a', watcher)
    await things.settle()
    const watch = await watching
    await turn()
    const end = { version, position: 0, isEnd: true }
    things.now.set('a', end)
    // Any later notice makes the record be read again, as its age does in time.
    hub.notice('a', 9)
    await things.settle()
    assert.deepEqual(watcher.seen, [end])
    hub.notice('a', 10)
    await things.settle()
    assert.deepEqual(watcher.seen, [end], 'once')
    watch?.stop()
  })
}

test('one watcher that throws costs its neighbours nothing', async () => {
  const { things, hub } = open()
  things.put('a', 1)
  const watcher = createWatcher()
  const both = Promise.all([
    hub.watch('a', {
      onSnapshot() {
        throw new Error('bad watcher')
      },
      onGone() {},
    }),
    hub.watch('a', watcher),
  ])
  await things.settle()
  const watches = await both
  await turn()
  things.put('a', 2)
  hub.notice('a', 2)
  await things.settle()
  assert.deepEqual(watcher.versions(), [2])
  for (const watch of watches) watch?.stop()
})

const steps = fc.array(fc.constantFrom('change', 'change silently', 'notice', 'answer', 'turn', 'join'), {
  minLength: 1,
  maxLength: 40,
})

test('whatever the order of changes, notices, reads and joins: versions rise and the last noticed one arrives', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (script) => {
      const { things, hub } = open()
      things.put('a', 1)
      let version = 1
      let noticed = 1
      const joined: { watcher: ReturnType<typeof createWatcher>; watching: ReturnType<typeof hub.watch> }[] = []
      const act = {
        change() {
          things.put('a', ++version)
          hub.notice('a', version)
          noticed = version
        },
        'change silently': () => things.put('a', ++version),
        notice() {
          hub.notice('a', version)
          noticed = version
        },
        answer: () => things.answerOne(),
        turn: () => turn(),
        join() {
          const watcher = createWatcher()
          joined.push({ watcher, watching: hub.watch('a', watcher) })
        },
      }
      for (const step of script) await act[step]()
      await things.settle()
      for (const { watcher, watching } of joined) {
        const watch = await watching
        await turn()
        const all = [watch?.snapshot.version ?? 0, ...watcher.versions()]
        assert.deepEqual(
          all,
          all.toSorted((a, b) => a - b),
        )
        assert.equal(new Set(all).size, all.length)
        assert.ok((all.at(-1) ?? 0) >= noticed, `${all} lacks ${noticed}`)
        watch?.stop()
      }
      assert.equal(hub.topicCount(), 0)
    }),
    { numRuns: 150 },
  )
})

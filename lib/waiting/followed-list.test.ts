import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { FollowedList } from './followed-list.ts'

interface Entry {
  readonly name: string
  readonly value: number
  readonly version: number
}

/** A list that several copies follow; its reads are answered when the test says so, with what was true when they were asked. */
function createSource() {
  const now = new Map<string, Entry>()
  const pending: (() => void)[] = []
  let version = 0
  return {
    now,
    write(name: string, value: number): Entry {
      version++
      const entry = { name, value, version }
      now.set(name, entry)
      return entry
    },
    read(after: number, limit: number): Promise<readonly Entry[]> {
      const all = [...now.values()].filter((entry) => entry.version > after).sort((a, b) => a.version - b.version)
      return new Promise((resolve) => pending.push(() => resolve(all.slice(0, limit))))
    },
    answer: () => pending.shift()?.(),
    async settle() {
      for (let idle = 0; idle < 20; idle++) {
        if (pending.length > 0) idle = 0
        pending.shift()?.()
        await Promise.resolve()
      }
    },
  }
}

function follow(source: ReturnType<typeof createSource>, pageSize = 2) {
  const copy = new Map<string, number>()
  const list = new FollowedList<Entry>({
    read: source.read,
    take: ({ name, value }) => void copy.set(name, value),
    pageSize,
  })
  return { copy, list }
}

test('a refresh reads page by page until nothing is newer', async () => {
  const source = createSource()
  const { copy, list } = follow(source)
  for (let index = 0; index < 5; index++) source.write(`n${index}`, index)
  const refreshed = list.refresh()
  await source.settle()
  await refreshed
  assert.equal(copy.size, 5)
  assert.equal(list.version, 5)
})

test('a refresh that is asked for during a read brings what that read may have missed', async () => {
  const source = createSource()
  const { copy, list } = follow(source)
  const first = list.refresh()
  source.write('a', 1)
  const second = list.refresh()
  await source.settle()
  await Promise.all([first, second])
  assert.equal(copy.get('a'), 1)
})

test('a page that was asked for before a write of this process does not put the older state back', async () => {
  const source = createSource()
  const { copy, list } = follow(source)
  source.write('a', 1)
  const refreshed = list.refresh()
  await list.write(
    async () => source.write('a', 2),
    ({ value }) => void copy.set('a', value),
  )
  source.answer()
  await Promise.resolve()
  assert.equal(copy.get('a'), 2)
  await source.settle()
  await refreshed
  assert.equal(copy.get('a'), 2)
})

test('a read that fails is told, and the next one works', async () => {
  let isBroken = true
  const list = new FollowedList<Entry>({
    read: async () => {
      if (isBroken) throw new Error('away')
      return []
    },
    take() {},
  })
  await assert.rejects(list.refresh(), /away/)
  isBroken = false
  await list.refresh()
})

const steps = fc.array(
  fc.record({
    who: fc.nat(1),
    what: fc.constantFrom('write', 'refresh', 'answer', 'turn'),
    name: fc.constantFrom('a', 'b', 'c'),
  }),
  { maxLength: 40 },
)

test('whatever two processes write and read in whatever order: after a refresh both copies are the list', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (script) => {
      const source = createSource()
      const copies = [follow(source), follow(source)]
      const underway: Promise<unknown>[] = []
      let value = 0
      for (const { who, what, name } of script) {
        const { copy, list } = copies[who]
        if (what === 'write') {
          const written = list.write(
            async () => {
              const entry = source.write(name, ++value)
              // The answer comes some turns after the commit.
              for (let turns = 0; turns < who * 3; turns++) await Promise.resolve()
              return entry
            },
            (entry) => void copy.set(entry.name, entry.value),
          )
          underway.push(written.then(() => list.refresh()))
        } else if (what === 'refresh') underway.push(list.refresh())
        else if (what === 'answer') source.answer()
        else await Promise.resolve()
      }
      await source.settle()
      await Promise.all(underway)
      const last = Promise.all(copies.map(({ list }) => list.refresh()))
      await source.settle()
      await last
      const wanted = [...source.now.values()].map(({ name, value }) => [name, value]).sort()
      for (const { copy } of copies) assert.deepEqual([...copy].sort(), wanted)
    }),
    { numRuns: 300 },
  )
})

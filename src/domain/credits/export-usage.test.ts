import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createUsageExport, type UsageBatch } from './export-usage.ts'
import type { UsageEntry } from './ledger.ts'
import { createReadUsage } from './usage-events.ts'

function entry(seq: number): UsageEntry {
  return {
    ...{
      seq,
      accountId: 'acme',
      kind: 'settle',
      reference: `call:${seq}`,
      granted: 0,
      available: 0,
      held: -5,
      charged: 5,
    },
    ...{ at: new Date(seq * 1000), memo: '', pool: null, model: 'fake/one', keyId: null, endpoint: null },
    ...{ endpointVersion: null, tag: null },
  }
}

/** A process that was killed: nothing of it runs any more. */
class Killed extends Error {}

type Fate = 'arrives' | 'answer lost' | 'killed before' | 'killed after' | 'refused'
const FATES: readonly Fate[] = ['arrives', 'answer lost', 'killed before', 'killed after', 'refused']

/** One store, one receiver that takes no id twice, and any number of processes. */
function createWorld() {
  const entries: UsageEntry[] = []
  const meta = new Map<string, string>()
  const batches = new Map<string, string>()
  const taken: string[] = []
  let seq = 0
  let ids = 0

  function receive({ id, events }: UsageBatch): void {
    const text = JSON.stringify(events)
    assert.equal(batches.get(id) ?? text, text, 'an id stands for one content')
    if (!batches.has(id)) taken.push(...events.map((event) => String(event['id'])))
    batches.set(id, text)
  }

  const ledger = {
    top: async () => ({ seq, next: 0n, over: 0n }),
    usageEntries: async ({ after, upTo, limit }: { after: number; upTo: number; limit: number }) =>
      entries.filter((each) => each.seq > after && each.seq <= upTo).slice(0, limit),
  }
  return {
    entries,
    taken,
    charge(count: number) {
      // Holds and releases have numbers, too.
      for (let index = 0; index < count; index += 1) {
        seq += 1 + (index % 3)
        entries.push(entry(seq))
      }
    },
    /** `writesUntilDeath`: the process ends before that write. */
    open(fates: readonly Fate[], writesUntilDeath: number) {
      const left = [...fates]
      let writes = writesUntilDeath
      return createUsageExport({
        meta: {
          readMeta: async (key) => meta.get(key) ?? null,
          async changeMeta(key, change) {
            if (writes === 0) throw new Killed()
            writes -= 1
            const value = change(meta.get(key) ?? null)
            meta.set(key, value)
            return value
          },
        },
        readUsage: createReadUsage({ ledger, pause: async () => {} }),
        top: ledger.top,
        async send(batch) {
          const fate = left.shift() ?? 'arrives'
          if (fate === 'killed before') throw new Killed()
          if (fate === 'refused') return 'refused 500'
          receive(batch)
          if (fate === 'killed after') throw new Killed()
          return fate === 'answer lost' ? 'timeout' : null
        },
        makeSecret: () => ({ secret: new Uint8Array(1), sealed: new Uint8Array(1) }),
        newId() {
          ids += 1
          return `export${ids}`
        },
        clock: { now: () => new Date(0) },
      })
    },
  }
}

const round = fc.record({
  charges: fc.nat({ max: 1300 }),
  processes: fc.array(
    fc.record({ fates: fc.array(fc.constantFrom(...FATES), { maxLength: 4 }), writes: fc.integer({ min: 0, max: 7 }) }),
    { minLength: 1, maxLength: 3 },
  ),
})
const forever = new AbortController().signal

test('each event arrives once, in order, whenever processes die, answers are lost and several send at a time', async () => {
  const property = fc.asyncProperty(fc.array(round, { minLength: 1, maxLength: 6 }), async (rounds) => {
    const world = createWorld()
    await world.open([], Number.POSITIVE_INFINITY).put('https://billing.example.com', 'beginning')
    for (const { charges, processes } of rounds) {
      world.charge(charges)
      const runs = processes.map(({ fates, writes }) => world.open(fates, writes).run(forever))
      for (const run of await Promise.allSettled(runs))
        if (run.status === 'rejected' && !(run.reason instanceof Killed)) throw run.reason
    }
    await world.open([], Number.POSITIVE_INFINITY).run(forever)
    assert.deepEqual(
      world.taken,
      world.entries.map(({ seq }) => `call:${seq}:charge`),
    )
  })
  await fc.assert(property, { numRuns: 40 })
})

test('begins with what comes next, goes on at another address, and says why nothing arrives', async () => {
  const world = createWorld()
  world.charge(3)
  const refusing = world.open(['refused'], Number.POSITIVE_INFINITY)
  assert.equal(await refusing.find(), null)
  await assert.rejects(refusing.remove(), { refusal: 'not_found' })
  for (const url of [
    'ftp://x.example',
    'nowhere',
    'https://user:word@x.example',
    `https://x.example/${'a'.repeat(2048)}`,
  ])
    await assert.rejects(refusing.put(url, null), { refusal: 'invalid_field' }, url)
  const first = await refusing.put('https://one.example', null)
  world.charge(2)
  await refusing.run(forever)
  assert.deepEqual([(await refusing.find())?.failure, world.taken], ['refused 500', []])
  const second = await refusing.put('https://two.example', null)
  assert.equal(second.state.after, first.state.after)
  await refusing.run(forever)
  const { failure, after } = (await refusing.find()) ?? {}
  assert.deepEqual([failure, after], [null, world.entries.at(-1)?.seq])
  assert.equal(world.taken.length, 2)
  await refusing.remove()
  world.charge(1)
  await refusing.run(forever)
  assert.equal(world.taken.length, 2)
})

/** How every store keeps the processes of a service. Two views of one store stand for two processes side by side. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import type { NodeAbout, NodeStore } from '../../src/domain/service-nodes/node-store.ts'
import { at, START } from './store-under-test.ts'

export interface NodeStorePair {
  /** Two views of one store, each as a process of its own would open it. */
  openPair(): Promise<{ readonly views: readonly [NodeStore, NodeStore]; close(): Promise<void> }>
}

const ABOUT: NodeAbout = { version: '1.0.0', host: 'one', workers: { default: 2 } }

export function testNodeStore(opener: NodeStorePair): void {
  describe('the processes of a service', () => {
    let opened: Awaited<ReturnType<NodeStorePair['openPair']>> | null = null
    before(async () => {
      opened = await opener.openPair()
    })
    after(() => opened?.close())
    const views = () => opened?.views ?? assert.fail('the stores are opened before the first test')

    test('see each other with what each says of itself, until they leave', async () => {
      const [one, other] = views()
      const [first, second] = [`a${randomUUID()}`, `b${randomUUID()}`]
      await one.beat({ id: first, now: START, aliveUntil: at(30_000), about: ABOUT })
      await other.beat({ id: second, now: at(5), aliveUntil: at(30_005), about: { ...ABOUT, host: 'two' } })
      await one.beat({ id: first, now: at(5000), aliveUntil: at(35_000), about: { ...ABOUT, workers: {} } })
      const seen = (await other.list()).filter(({ id }) => id === first || id === second)
      assert.deepEqual(seen, [
        { id: first, startedAt: START, seenAt: at(5000), aliveUntil: at(35_000), about: { ...ABOUT, workers: {} } },
        { id: second, startedAt: at(5), seenAt: at(5), aliveUntil: at(30_005), about: { ...ABOUT, host: 'two' } },
      ])
      await one.leave(first)
      await one.leave(first)
      assert.ok(!(await other.list()).some(({ id }) => id === first))
    })

    test('that ended without a word are forgotten after a while, and only they', async () => {
      const [one, other] = views()
      const [gone, late] = [randomUUID(), randomUUID()]
      await one.beat({ id: gone, now: START, aliveUntil: at(-60_000), about: ABOUT })
      await other.beat({ id: late, now: START, aliveUntil: at(-40_000), about: ABOUT })
      assert.equal(await other.forgetNodes(at(-50_000)), 1)
      const left = (await one.list()).map(({ id }) => id)
      assert.deepEqual([left.includes(gone), left.includes(late)], [false, true])
    })

    test('hold a name one at a time: until its time is over, or its holder leaves', async () => {
      const [one, other] = views()
      const [name, first, second] = [randomUUID(), randomUUID(), randomUUID()]
      const take = async (view: NodeStore, id: string, nowMs: number) => {
        const wanted = [{ name, until: at(nowMs + 15_000) }]
        const { held } = await view.beat({ id, now: at(nowMs), aliveUntil: at(nowMs + 30_000), about: ABOUT, wanted })
        return held.includes(name)
      }
      const holders = async (nowMs: number) =>
        (await one.holdings(at(nowMs))).filter(({ names }) => names.includes(name)).map(({ nodeId }) => nodeId)
      assert.equal(await take(one, first, 0), true)
      assert.equal(await take(other, second, 14_999), false)
      assert.equal(await take(one, first, 5000), true, 'renewed')
      assert.equal(await take(other, second, 19_999), false)
      assert.deepEqual(await holders(19_999), [first])
      assert.equal(await take(other, second, 20_000), true, 'its time was over')
      assert.equal(await take(one, first, 20_000), false)
      await one.leave(first)
      assert.equal(await take(one, first, 20_001), false, 'it was not its to give up')
      assert.deepEqual([await holders(34_999), await holders(35_000)], [[second], []])
      await other.leave(second)
      assert.equal(await take(one, first, 20_002), true)
    })

    test('take several names with one beat, and are told which of them they hold', async () => {
      const [one, other] = views()
      const [free, taken, first, second] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()]
      const beat = (view: NodeStore, id: string, names: readonly string[]) =>
        view.beat({
          ...{ id, now: START, aliveUntil: at(30_000), about: ABOUT },
          wanted: names.map((name) => ({ name, until: at(15_000) })),
        })
      assert.deepEqual((await beat(one, first, [])).held, [])
      assert.deepEqual((await beat(one, first, [taken])).held, [taken])
      assert.deepEqual((await beat(other, second, [taken, free])).held, [free])
      assert.ok(
        (await other.list()).some(({ id }) => id === second),
        'it lives whatever it got',
      )
    })

    test('of whom many want one name at once, exactly one gets it', async () => {
      const [one, other] = views()
      const name = randomUUID()
      const wanted = Array.from({ length: 20 }, (_, index) => {
        const [view, nodeId] = [index % 2 === 0 ? one : other, randomUUID()]
        const beat = { id: nodeId, now: START, aliveUntil: at(30_000), about: ABOUT }
        return view.beat({ ...beat, wanted: [{ name, until: at(15_000) }] }).then(({ held }) => ({ nodeId, held }))
      })
      const winners = (await Promise.all(wanted)).filter(({ held }) => held.includes(name))
      assert.equal(winners.length, 1)
      const holders = (await other.holdings(START)).filter(({ names }) => names.includes(name))
      assert.deepEqual(
        holders.map(({ nodeId }) => nodeId),
        winners.map(({ nodeId }) => nodeId),
      )
    })
  })
}

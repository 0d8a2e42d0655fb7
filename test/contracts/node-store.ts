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
      const take = (view: NodeStore, nodeId: string, nowMs: number) =>
        view.takeSingleton({ name, nodeId, now: at(nowMs), until: at(nowMs + 15_000) })
      const held = (nodeId: string, sinceMs: number, untilMs: number) => ({
        name,
        nodeId,
        heldSince: at(sinceMs),
        heldUntil: at(untilMs),
      })
      assert.deepEqual(await take(one, first, 0), held(first, 0, 15_000))
      assert.deepEqual(await take(other, second, 14_999), held(first, 0, 15_000))
      assert.deepEqual(await take(one, first, 5000), held(first, 0, 20_000), 'renewed')
      assert.deepEqual(await take(other, second, 20_000), held(second, 20_000, 35_000), 'its time was over')
      assert.deepEqual(await take(one, first, 20_000), held(second, 20_000, 35_000))
      await one.leave(first)
      assert.deepEqual(await take(one, first, 20_001), held(second, 20_000, 35_000), 'it was not its to give up')
      await other.leave(second)
      assert.deepEqual(await take(one, first, 20_002), held(first, 20_002, 35_002))
    })

    test('of whom many want one name at once, exactly one gets it', async () => {
      const [one, other] = views()
      const name = randomUUID()
      const wanted = Array.from({ length: 20 }, (_, index) => {
        const [view, nodeId] = [index % 2 === 0 ? one : other, randomUUID()]
        return view.takeSingleton({ name, nodeId, now: START, until: at(15_000) }).then((held) => ({ nodeId, held }))
      })
      const answers = await Promise.all(wanted)
      const winners = answers.filter(({ nodeId, held }) => held.nodeId === nodeId)
      assert.equal(winners.length, 1)
      assert.deepEqual(new Set(answers.map(({ held }) => held.nodeId)), new Set([winners[0].nodeId]))
    })
  })
}

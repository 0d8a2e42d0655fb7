/** How every store keeps the engines of a service. Two views of one store stand for two processes side by side. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import type { EngineRegistry, PublishedEngine } from '../../src/domain/engine/directory/engine-registry.ts'
import type { EngineStatus } from '../../src/domain/engine/fleet/engine-status.ts'
import { at, START } from './store-under-test.ts'

export interface EngineRegistryPair {
  /** Two views of one store, each as a process of its own would open it. */
  openPair(): Promise<{ readonly views: readonly [EngineRegistry, EngineRegistry]; close(): Promise<void> }>
}

export function newEngineStatus(fields: Partial<EngineStatus> = {}): EngineStatus {
  return {
    id: randomUUID(),
    state: 'ready',
    reason: null,
    isSupervised: false,
    concurrency: 2,
    running: 1,
    nodeClasses: 3,
    weights: 1,
    loadedWeights: ['a.safetensors'],
    version: '0.33.0',
    observed: { id: 'obs-0123456789abcdef', comfyui: '0.33.0', python: '3.12.3', torch: null, packs: ['glow'] },
    reconnects: 0,
    memoryBytes: null,
    startedAt: START,
    lastError: { message: 'it was away', at: at(1) },
    counts: { jobs: 5, failures: 1, losses: 0, switches: 2, recycles: 0 },
    ...fields,
  }
}

function newEngine(fields: Partial<PublishedEngine> = {}): PublishedEngine {
  return { isShared: true, catalogHash: null, status: newEngineStatus(), ...fields }
}

export function testEngineRegistry(opener: EngineRegistryPair): void {
  describe('the engines of a service', () => {
    let opened: Awaited<ReturnType<EngineRegistryPair['openPair']>> | null = null
    before(async () => {
      opened = await opener.openPair()
    })
    after(() => opened?.close())
    const views = () => opened?.views ?? assert.fail('the stores are opened before the first test')
    const find = async (view: EngineRegistry, id: string) =>
      (await view.list()).find(({ status }) => status.id === id) ?? null

    test('are known to every process as the one that drives them said last', async () => {
      const [one, other] = views()
      const engine = newEngine({ catalogHash: 'hash' })
      const { id } = engine.status
      const publication = { nodeId: 'one', engines: [engine], now: START, until: at(30_000), takesLapsed: false }
      assert.deepEqual(await one.publish(publication), [id])
      const known = {
        ...engine,
        nodeId: 'one',
        heldUntil: at(30_000),
        seenAt: START,
        will: 'open',
        willNumber: 0,
      } as const
      assert.deepEqual(await find(other, id), known)
      const later = newEngine({ status: newEngineStatus({ id, state: 'lost', startedAt: null, lastError: null }) })
      await one.publish({ ...publication, engines: [later], now: at(5000), until: at(35_000) })
      const lost = { ...known, status: later.status, heldUntil: at(35_000), seenAt: at(5000) }
      assert.deepEqual(await find(other, id), lost, 'what it could run stays known while it cannot be asked')
    })

    test('are driven by one process at a time: until its time is over, or it leaves', async () => {
      const [one, other] = views()
      const [shared, own] = [newEngine(), newEngine({ isShared: false })]
      const publish = (view: EngineRegistry, nodeId: string, nowMs: number, engines = [shared], takesLapsed = true) =>
        view.publish({ nodeId, engines, now: at(nowMs), until: at(nowMs + 30_000), takesLapsed })
      assert.equal((await publish(one, 'first', 0, [shared, own])).length, 2)
      assert.deepEqual(await publish(other, 'second', 29_999), [])
      assert.equal((await find(other, shared.status.id))?.nodeId, 'first')
      assert.deepEqual(await publish(other, 'second', 30_000, [shared], false), [], 'perhaps nobody could renew it')
      assert.deepEqual(await publish(other, 'second', 30_000), [shared.status.id])
      assert.deepEqual(
        await publish(one, 'first', 30_001, [shared, own]),
        [own.status.id],
        'it notices that it lost it',
      )
      await other.leave('second')
      assert.deepEqual(await publish(one, 'first', 30_002, [shared], false), [shared.status.id], 'it was given up')
      await one.leave('first')
      assert.equal(await find(other, own.status.id), null, 'gone with the process that it belonged to')
      assert.deepEqual((await find(other, shared.status.id))?.heldUntil, new Date(0))
      assert.deepEqual(await publish(other, 'second', 30_003), [shared.status.id])
    })

    test('of whom many want one at once, exactly one drives it', async () => {
      const [one, other] = views()
      const engine = newEngine()
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          (index % 2 === 0 ? one : other).publish({
            nodeId: `node ${index}`,
            engines: [engine],
            now: START,
            until: at(30_000),
            takesLapsed: true,
          }),
        ),
      )
      assert.equal(answers.filter(({ length }) => length === 1).length, 1)
    })

    test('carry the will of an operator to whoever drives them, and through a change of driver', async () => {
      const [one, other] = views()
      const engine = newEngine()
      const { id } = engine.status
      assert.equal(await other.setWill(id, 'cordoned'), false, 'nobody knows it')
      await one.publish({ nodeId: 'first', engines: [engine], now: START, until: at(30_000), takesLapsed: true })
      assert.equal(await other.setWill(id, 'cordoned'), true)
      await other.setWill(id, 'cordoned')
      await other.publish({
        nodeId: 'second',
        engines: [engine],
        now: at(30_000),
        until: at(60_000),
        takesLapsed: true,
      })
      const found = await find(one, id)
      assert.deepEqual([found?.nodeId, found?.will, found?.willNumber], ['second', 'cordoned', 2])
    })

    test('are forgotten when they were not seen for long, each kind after its own time, with what only they can run', async () => {
      const [one, other] = views()
      const [kept, shared, own] = [
        newEngine({ catalogHash: 'kept' }),
        newEngine({ catalogHash: 'shared' }),
        newEngine({ isShared: false, catalogHash: 'own' }),
      ]
      for (const hash of ['kept', 'shared', 'own']) await one.putCatalog(hash, `{"${hash}":1}`)
      await one.putCatalog('kept', 'the same content has the same name')
      const publication = { nodeId: 'first', until: at(0), takesLapsed: true }
      await one.publish({ ...publication, engines: [shared, own], now: at(-20_000) })
      await one.publish({ ...publication, engines: [kept], now: at(-10_000) })
      const all = ['kept', 'shared', 'own', 'other']
      assert.deepEqual([...(await other.findCatalogs(all)).keys()].sort(), ['kept', 'own', 'shared'])
      assert.equal(await other.forget({ sharedBefore: at(-30_000), ownBefore: at(-15_000) }), 1)
      assert.deepEqual([await find(one, own.status.id), (await one.findCatalogs(['own'])).size], [null, 0])
      assert.equal(await other.forget({ sharedBefore: at(-15_000), ownBefore: at(-15_000) }), 1)
      assert.deepEqual(await one.findCatalogs(all), new Map([['kept', '{"kept":1}']]))
      assert.deepEqual(await one.findCatalogs([]), new Map())
      assert.deepEqual(await one.measureCatalogs(all), new Map([['kept', 10]]))
      assert.deepEqual(await one.measureCatalogs([]), new Map())
    })

    test('are forgotten when they are named, however lately they were seen, and no other is', async () => {
      const [one, other] = views()
      const [kept, named] = [newEngine(), newEngine({ catalogHash: 'of named' })]
      await one.putCatalog('of named', '{"ä":1}')
      assert.deepEqual(await other.measureCatalogs(['of named']), new Map([['of named', 8]]))
      await one.publish({
        ...{ nodeId: 'first', engines: [kept, named], now: START, until: at(30_000), takesLapsed: true },
      })
      const engineIds = [named.status.id, 'nobody']
      assert.equal(await other.forget({ sharedBefore: at(-60_000), ownBefore: at(-60_000), engineIds }), 1)
      assert.deepEqual([await find(one, named.status.id), (await one.findCatalogs(['of named'])).size], [null, 0])
      assert.notEqual(await find(one, kept.status.id), null)
    })
  })
}

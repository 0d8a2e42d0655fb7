/** Several processes over one registry: each sees what all engines can run, and each server is driven by one of them. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { readGraph } from '../../engine/graph/graph-json.ts'
import { silentLog } from '../../lib/log.ts'
import { openSqliteStore } from '../../src/adapters/store/sqlite/open-sqlite-store.ts'
import { claimEngines, type OpenedDirectory } from '../../src/compose/engines/open-directory.ts'
import { createEngineDirectory } from '../../src/domain/engine/directory/engine-directory.ts'
import type { EngineWill } from '../../src/domain/engine/directory/engine-registry.ts'
import { NEVER_RECYCLE } from '../../src/domain/engine/fleet/fleet.ts'
import { type FleetEngine, toResidentEngine } from '../../src/domain/engine/fleet/fleet-engine.ts'
import { createLoneHeartbeat, type Heartbeat, openHeartbeat } from '../../src/domain/service-nodes/heartbeat.ts'
import type { Store, StoreGlance } from '../../src/domain/store.ts'
import { createLaneTable } from '../../src/domain/workflows/needs.ts'
import { withDirectory } from '../adapters/store/sqlite/temporary-store.ts'
import { createFakeEngine } from '../support/engines/fake-engine.ts'
import { createFakeFleetEngine } from '../support/engines/fake-fleet-engine.ts'
import { createFixedClock, type FixedClock } from '../support/fixed-clock.ts'

interface Process extends AsyncDisposable {
  readonly opened: OpenedDirectory
  readonly heartbeat: Heartbeat
  readonly wills: readonly [string, EngineWill][]
  readonly command: ReturnType<OpenedDirectory['toCommand']>
  /** One beat, and one look at the others. */
  turn(): Promise<void>
}

const about = () => ({ version: '1', host: 'here', workers: {} })

async function openProcess(
  store: Pick<Store, 'engines' | 'nodes'>,
  clock: FixedClock,
  engines: readonly FleetEngine[],
  glance?: () => StoreGlance | null,
): Promise<Process> {
  const heartbeat = await openHeartbeat({ store: store.nodes, nodeId: randomUUID(), about, clock, log: silentLog })
  const parts = { store, node: { heartbeat }, recycleLimits: NEVER_RECYCLE, clock, log: silentLog }
  const opened = await claimEngines({ ...parts, ...(glance && { glance }) }).open(engines)
  const wills: [string, EngineWill][] = []
  const command = opened.toCommand((engineId, will) => {
    wills.push([engineId, will])
    if (will === 'open') opened.fleet.resume(engineId)
    else opened.fleet.cordon(engineId)
  })
  const follow = opened.chores.find(({ name }) => name === 'follow-engines')
  return {
    opened,
    heartbeat,
    wills,
    command,
    async turn() {
      await heartbeat.beat()
      await follow?.run(new AbortController().signal)
    },
    async [Symbol.asyncDispose]() {
      await opened[Symbol.asyncDispose]()
      await heartbeat[Symbol.asyncDispose]()
    },
  }
}

function withStore(body: (store: Store, clock: FixedClock) => Promise<void>): Promise<void> {
  return withDirectory(async (directory) => {
    const clock = createFixedClock()
    await using store = await openSqliteStore({ directory, clock, synchronous: 'NORMAL' })
    await body(store, clock)
  })
}

const POOL = 'default'
const checkpoint = (name: string) => readGraph({ '1': { class_type: 'FakeCheckpoint', inputs: { ckpt_name: name } } })

test('a process without engines validates by those of the others, and a lane is stranded only when nobody serves it', () =>
  withStore(async (store, clock) => {
    const engine = createFakeFleetEngine({ id: 'gpu:8188', weights: ['a.safetensors'] })
    await using api = await openProcess(store, clock, [])
    const { directory } = api.opened
    assert.equal(directory.isCatalogOpen(), true, 'no engine is known: nothing can be ruled out')
    await using worker = await openProcess(store, clock, [engine])
    await worker.turn()
    await api.turn()
    assert.equal(directory.isCatalogOpen(), false)
    assert.ok(directory.catalog(POOL).classTypes().includes('FakeCheckpoint'))
    assert.deepEqual(directory.findLacks(checkpoint('a.safetensors'), POOL), [])
    assert.equal(directory.findLacks(checkpoint('b.safetensors'), POOL).length, 1)
    const lane = directory.laneOf(checkpoint('a.safetensors'), POOL)
    assert.equal(worker.opened.directory.laneOf(checkpoint('a.safetensors'), POOL), lane)
    assert.deepEqual(directory.strandedLanes(), [])
    assert.deepEqual(
      directory.status().map(({ id, state, drivenBy, weights }) => [id, state, drivenBy, weights]),
      [['gpu:8188', 'ready', worker.heartbeat.nodeId, 1]],
    )
    assert.deepEqual(directory.availability().weights.get('a.safetensors'), ['gpu:8188'])
    engine.install(['c.safetensors'])
    await worker.turn()
    await api.turn()
    assert.deepEqual(directory.strandedLanes(), [lane])
  }))

test('a process without engines knows the weights of the others, and who has a file that is missing', () =>
  withStore(async (store, clock) => {
    const file = { folder: 'checkpoints', name: 'a.safetensors', sizeBytes: 6_938_078_334, hash: 'blake3:00' }
    const listing = {
      ...createFakeFleetEngine({ id: 'gpu1', weights: ['a.safetensors', 'b.safetensors'] }),
      weightFiles: () => [file],
    }
    const other = createFakeFleetEngine({ id: 'gpu2', weights: ['c.safetensors'], without: ['FakeSave'] })
    await using api = await openProcess(store, clock, [])
    await using worker = await openProcess(store, clock, [listing, other])
    await worker.turn()
    await api.turn()
    const { directory } = api.opened
    const unknown = { folder: 'checkpoints', sizeBytes: null, hash: null, isLoaded: false }
    assert.deepEqual(directory.weights(POOL), [
      { ...file, engineId: 'gpu1', isLoaded: false },
      { ...unknown, engineId: 'gpu1', name: 'b.safetensors' },
      { ...unknown, engineId: 'gpu2', name: 'c.safetensors' },
    ])
    const inputs = { ckpt_name: 'c.safetensors' }
    const graph = { '1': { class_type: 'FakeCheckpoint', inputs }, '2': { class_type: 'FakeSave', inputs: {} } }
    const [lack] = directory.findLacks(readGraph(graph), POOL)
    assert.deepEqual(lack?.missing, { folder: 'checkpoints', engines: ['gpu2'] })
  }))

test('an engine of a joined worker is told of to its own pools alone', () =>
  withStore(async (store, clock) => {
    await using own = await openProcess(store, clock, [createFakeFleetEngine({ id: 'own' })])
    await own.turn()
    const { fleet, directory } = own.opened
    const [status] = directory.status()
    assert.ok(status)
    const guest = {
      status: { ...status, id: 'guest' },
      catalog: null,
      weights: null,
      drivenBy: null,
      pools: new Set(['acme']),
    }
    const seen = createEngineDirectory({ fleet, lanes: createLaneTable(), nodeId: 'here', others: () => [guest] })
    const idsOf = (pool?: string) => seen.status(pool).map(({ id }) => id)
    assert.deepEqual([idsOf(), idsOf('acme'), idsOf(POOL)], [['own', 'guest'], ['own', 'guest'], ['own']])
  }))

test('a server that two processes were given is driven by one; the other takes it when that one is gone', () =>
  withStore(async (store, clock) => {
    const servers = [createFakeFleetEngine({ id: 'gpu:8188' }), createFakeFleetEngine({ id: 'gpu:8188' })]
    const takenOver: string[] = []
    const withTakeOver = (engine: FleetEngine, name: string): FleetEngine => ({
      ...engine,
      takeOver: async () => void takenOver.push(name),
    })
    const first = await openProcess(store, clock, [withTakeOver(servers[0]!, 'first')])
    await using second = await openProcess(store, clock, [withTakeOver(servers[1]!, 'second')])
    const offers = (process: Process) => process.opened.fleet.offers('default').length
    assert.deepEqual([offers(first), offers(second)], [0, 0], 'before it is known who drives it')
    await first.turn()
    await second.turn()
    assert.deepEqual([offers(first), offers(second), takenOver], [1, 0, ['first']])
    const [shown] = second.opened.directory.status()
    assert.deepEqual([shown?.state, shown?.drivenBy], ['ready', first.heartbeat.nodeId])
    assert.equal(second.opened.fleet.status()[0]?.state, 'standby')
    for (let beats = 0; beats < 5; beats++) {
      clock.advance(5000)
      await second.turn()
    }
    assert.deepEqual([offers(first), offers(second)], [1, 0])
    clock.advance(5000)
    assert.equal(offers(first), 0, 'it could not renew its hold in time')
    await second.turn()
    assert.deepEqual([offers(second), takenOver], [1, ['first', 'second']])
    await first.turn()
    assert.equal(offers(first), 0)
    await first[Symbol.asyncDispose]()
    assert.equal(offers(second), 1)
  }))

test('after an outage of the store nobody takes the server of another before that one could renew it', () =>
  withStore(async (store, clock) => {
    const open = () => openProcess(store, clock, [createFakeFleetEngine({ id: 'gpu:8188' })])
    await using first = await open()
    await using second = await open()
    await first.turn()
    await second.turn()
    clock.advance(45_000)
    await second.turn()
    await first.turn()
    const offers = [first, second].map(({ opened }) => opened.fleet.offers('default').length)
    assert.deepEqual(offers, [1, 0], 'the second was back first')
  }))

test('an ordered end frees a server at once, and takes along the engines that belong to the process', () =>
  withStore(async (store, clock) => {
    const shared = () => createFakeFleetEngine({ id: 'gpu:8188' })
    const own = toResidentEngine(createFakeEngine(), { id: 'embedded-1', concurrency: 1 })
    const first = await openProcess(store, clock, [shared(), own])
    await using second = await openProcess(store, clock, [shared()])
    await first.turn()
    await second.turn()
    const ids = () => second.opened.directory.status().map(({ id }) => id)
    assert.deepEqual(ids(), ['embedded-1', 'gpu:8188'])
    await first[Symbol.asyncDispose]()
    await second.turn()
    assert.deepEqual([ids(), second.opened.fleet.offers('default').length], [['gpu:8188'], 1])
  }))

test('what an operator wants reaches whoever drives the engine, each wish once, and whoever drives it next', () =>
  withStore(async (store, clock) => {
    const servers = [createFakeFleetEngine({ id: 'gpu:8188' }), createFakeFleetEngine({ id: 'gpu:8188' })]
    await using api = await openProcess(store, clock, [])
    const first = await openProcess(store, clock, [servers[0]!])
    await using second = await openProcess(store, clock, [servers[1]!])
    for (const process of [first, second, api]) await process.turn()
    assert.equal((await api.command('gpu:8188', 'cordoned')).state, 'cordoned')
    await first.turn()
    await first.turn()
    assert.deepEqual([first.wills, first.opened.fleet.offers('default')], [[['gpu:8188', 'cordoned']], []])
    await api.turn()
    assert.equal(api.opened.directory.find('gpu:8188').state, 'cordoned')
    await first[Symbol.asyncDispose]()
    await second.turn()
    assert.deepEqual([second.wills, second.opened.fleet.offers('default')], [[['gpu:8188', 'cordoned']], []])
    assert.equal((await second.command('gpu:8188', 'open')).state, 'ready')
    assert.equal(second.opened.fleet.offers('default').length, 1)
    await assert.rejects(() => api.command('nobody', 'open'), { refusal: 'not_found' })
  }))

test('a process that is alone remembers what its servers could run, and asks nobody who drives them', () =>
  withStore(async (store, clock) => {
    const open = async (engine: FleetEngine) => {
      const heartbeat = createLoneHeartbeat({ nodeId: randomUUID(), about })
      const parts = { store, node: { heartbeat }, recycleLimits: NEVER_RECYCLE, clock, log: silentLog }
      return claimEngines(parts).open([engine])
    }
    const before = await open(createFakeFleetEngine({ id: 'gpu:8188', weights: ['a.safetensors'] }))
    assert.equal(before.fleet.offers('default').length, 1)
    await before.chores.find(({ name }) => name === 'publish-engines')?.run(new AbortController().signal)
    await before[Symbol.asyncDispose]()
    await using after = await open(createFakeFleetEngine({ id: 'gpu:8188', state: 'lost' }))
    assert.equal(after.directory.isCatalogOpen(), false)
    assert.deepEqual(after.directory.findLacks(checkpoint('a.safetensors'), POOL), [])
  }))

test('a process with nothing new to say or to see asks the registry every second beat, and at once when there is something', () =>
  withStore(async (store, clock) => {
    const asked: string[] = []
    const { engines, nodes } = store
    const counted: Store['engines'] = {
      ...engines,
      async list() {
        asked.push('list')
        return engines.list()
      },
      async publish(publication) {
        asked.push('publish')
        return engines.publish(publication)
      },
    }
    const own = createFakeFleetEngine({ id: 'gpu:8188' })
    let glance: StoreGlance | null = null
    const parts = { engines: counted, nodes }
    await using one = await openProcess(parts, clock, [own], () => glance)
    await using other = await openProcess(store, clock, [createFakeFleetEngine({ id: 'gpu:8189' })])
    async function askedAfterMs(passedMs: number): Promise<string[]> {
      clock.advance(passedMs)
      await other.turn()
      glance = await store.glance()
      asked.length = 0
      await one.turn()
      return [...asked]
    }
    await askedAfterMs(0)
    // What it says itself is a change, too.
    await askedAfterMs(5000)
    await askedAfterMs(5000)
    const idle = [
      await askedAfterMs(5000),
      await askedAfterMs(5000),
      await askedAfterMs(5000),
      await askedAfterMs(5000),
    ]
    assert.deepEqual(idle.flat().sort(), ['list', 'list', 'publish', 'publish'])
    await askedAfterMs(5000)
    assert.deepEqual(await askedAfterMs(1), [])
    await engines.setWill('gpu:8188', 'cordoned')
    assert.deepEqual(await askedAfterMs(1), ['list'])
    assert.deepEqual(one.wills, [['gpu:8188', 'cordoned']])
    assert.deepEqual(await askedAfterMs(1), ['publish'], 'it is cordoned')
    await askedAfterMs(1)
    assert.deepEqual(await askedAfterMs(1), [])
    glance = null
    await one.turn()
    assert.deepEqual(asked, ['list'], 'without a glance it looks for itself')
  }))

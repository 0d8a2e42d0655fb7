/**
 * Everything that may go wrong, each as a row: what it strikes, for how long, how it begins and how it is mended. A fault that begins
 * always gets its mending, also when the trial ends early.
 */
import { platform } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { createClient } from '../../../lib/postgres/driver.ts'
import type { FaultProxy, LinkState } from '../../support/network/fault-proxy.ts'
import type { SeededRandom } from '../../support/seeded-random.ts'
import type { ServiceNode } from '../world/service-node.ts'
import type { World, WorldShape } from '../world/world.ts'
import { migrateUnderLoad } from './migrate-under-load.ts'

export type FaultKind = keyof typeof FAULTS

export interface FaultRow {
  /** Names of what it may strike, given who takes part. */
  targets(shape: WorldShape): readonly string[]
  /** How long it lasts: at least, and at most. */
  readonly ms: readonly [number, number]
  /** How often it is drawn beside the others. */
  readonly weight: number
  /** Resolves when it has begun, with how to mend it. */
  begin(world: World, target: string, random: SeededRandom): Promise<() => Promise<void>>
}

const count = (name: string, size: number) => Array.from({ length: size }, (_, index) => `${name}-${index + 1}`)
const apis = ({ apis }: WorldShape) => count('api', apis)
const nodes = (shape: WorldShape) => [...apis(shape), ...count('worker', shape.workers)]
const engines = ({ engines }: WorldShape) => count('engine', engines)
const postgres = () => ['postgres']
const provider = () => ['provider']
const storage = ({ bytes }: WorldShape) => (bytes === 'bucket' ? ['storage'] : [])
/** A worker that joins hears everything from the node that it asks. */
const nodesOfBus = (shape: WorldShape) => [...apis(shape), ...count('worker', shape.workers - shape.joined)]
const nats = ({ bus }: WorldShape) => (bus === 'nats' ? ['nats'] : [])
const nodesOfBucket = (shape: WorldShape) => (shape.bytes === 'bucket' ? nodes(shape) : [])

const nothing = async () => {}

function nodeOf({ apis, workers }: World, name: string): ServiceNode {
  const found = [...apis, ...workers].find((node) => node.name === name)
  if (found === undefined) throw new Error(`there is no node ${name}`)
  return found
}

function engineOf({ engines }: World, name: string) {
  const found = engines.find((engine) => engine.name === name)
  if (found === undefined) throw new Error(`there is no engine ${name}`)
  return found
}

/** A link that is in some state for a while. */
function link(of: (world: World, target: string) => FaultProxy, state: LinkState): FaultRow['begin'] {
  return async (world, target) => {
    const proxy = of(world, target)
    proxy.set(state)
    return async () => proxy.set({ kind: 'open' })
  }
}

/** What is open leads nowhere from now on, and nobody is told; whatever is opened works. */
function forget(of: (world: World, target: string) => FaultProxy): FaultRow['begin'] {
  return async (world, target) => {
    of(world, target).forget()
    return nothing
  }
}

const databaseOf = (world: World, name: string) => nodeOf(world, name).database
const storageOf = (world: World, name: string) => nodeOf(world, name).storage
const busOf = (world: World, name: string) => nodeOf(world, name).bus
const frontOf = (world: World, name: string) => nodeOf(world, name).front
const engineLinkOf = (world: World, name: string) => engineOf(world, name).link
const SLOW: LinkState = { kind: 'open', delayMs: 200 }

export const FAULTS = {
  'kill a node': row(nodes, [0, 6000], 8, async (world, name) => {
    const node = nodeOf(world, name)
    await node.kill()
    return () => node.start()
  }),
  'freeze a node': row(nodes, [2000, 40_000], 5, async (world, name) => {
    const node = nodeOf(world, name)
    node.freeze()
    return async () => node.thaw()
  }),
  'restart a node': row(nodes, [0, 1000], 3, async (world, name) => {
    const node = nodeOf(world, name)
    await node.terminate()
    return () => node.start()
  }),
  'kill an engine': row(engines, [500, 8000], 6, async (world, name) => {
    const engine = engineOf(world, name)
    await engine.kill()
    return () => engine.start()
  }),
  'freeze an engine': row(engines, [2000, 25_000], 4, async (world, name) => {
    const engine = engineOf(world, name)
    engine.freeze()
    return async () => engine.thaw()
  }),
  'crash Postgres': row(postgres, [0, 2000], 3, async (world) => {
    await world.postgres.primary.stop('immediate')
    return () => world.postgres.primary.start()
  }),
  'freeze Postgres': row(
    () => (platform() === 'linux' ? ['postgres'] : []),
    [1000, 8000],
    2,
    async (world) => {
      const thaw = world.postgres.primary.freeze()
      return async () => thaw()
    },
  ),
  'fail over to the standby': row(postgres, [0, 1000], 3, async (world) => {
    // After a crash the primary shows commits that the standby may not have yet; whoever fails over looks at that first.
    await world.postgres.untilInStep()
    return failOver(world)
  }),
  'fail over to a standby that was held up': row(postgres, [0, 1000], 2, async (world, _, random) => {
    await world.postgres.untilInStep()
    world.postgres.replication.set({ kind: 'silent' })
    await pause(random.between(1000, 14_000))
    return failOver(world)
  }),
  'hold up the standby': row(
    postgres,
    [1000, 4000],
    2,
    link((world) => world.postgres.replication, { kind: 'silent' }),
  ),
  'end connections of Postgres': row(postgres, [0, 0], 4, async (world) => {
    await endBackends(world, 'random() < 0.5')
    return nothing
  }),
  'end what listens to notices': row(postgres, [0, 0], 3, async (world) => {
    await endBackends(world, "query ILIKE '%listen%'")
    return nothing
  }),
  'cut a node from Postgres': row(nodes, [1000, 20_000], 4, link(databaseOf, { kind: 'cut' })),
  'silence between a node and Postgres': row(nodes, [2000, 50_000], 4, link(databaseOf, { kind: 'silent' })),
  'half-open connections to Postgres': row(nodes, [2000, 20_000], 3, link(databaseOf, { kind: 'half-open' })),
  'a slow way to Postgres': row(nodes, [3000, 15_000], 3, link(databaseOf, SLOW)),
  'forgotten connections to Postgres': row(nodes, [0, 0], 3, forget(databaseOf)),
  'cut clients from a node': row(apis, [1000, 15_000], 4, link(frontOf, { kind: 'cut' })),
  'silence between clients and a node': row(apis, [2000, 30_000], 3, link(frontOf, { kind: 'silent' })),
  'half-open connections of clients': row(apis, [1000, 10_000], 2, link(frontOf, { kind: 'half-open' })),
  'a slow way for clients': row(apis, [3000, 15_000], 2, link(frontOf, SLOW)),
  'forgotten connections of clients': row(apis, [0, 0], 2, forget(frontOf)),
  'forgotten connections to an engine': row(engines, [0, 0], 2, forget(engineLinkOf)),
  'cut an engine off': row(engines, [1000, 20_000], 4, link(engineLinkOf, { kind: 'cut' })),
  'silence around an engine': row(engines, [2000, 25_000], 4, link(engineLinkOf, { kind: 'silent' })),
  'a slow way to an engine': row(engines, [3000, 15_000], 2, link(engineLinkOf, SLOW)),
  'cut the provider off': row(
    provider,
    [1000, 8000],
    3,
    link((world) => world.providerLink, { kind: 'cut' }),
  ),
  'silence around the provider': row(
    provider,
    [1000, 15_000],
    2,
    link((world) => world.providerLink, { kind: 'silent' }),
  ),
  'a storage that refuses everything': row(storage, [2000, 15_000], 4, async ({ storage: { bucket } }) => {
    if (bucket !== null) bucket.isDown = true
    return async () => {
      if (bucket !== null) bucket.isDown = false
    }
  }),
  'a storage that loses answers': row(storage, [0, 0], 3, async ({ storage: { bucket } }) => {
    for (const operation of ['put', 'complete_upload', 'put_part', 'delete'] as const)
      bucket?.fail(operation, { kind: 'lose_answer' }, 3)
    return nothing
  }),
  'a storage that breaks off': row(storage, [0, 0], 3, async ({ storage: { bucket } }) => {
    for (const operation of ['put', 'get', 'put_part', 'complete_upload'] as const)
      bucket?.fail(operation, { kind: 'cut' }, 4)
    return nothing
  }),
  'bytes that are damaged on their way': row(storage, [0, 0], 2, async ({ storage: { bucket } }) => {
    // Of downloads that go past the service nobody but the client could notice.
    for (const operation of ['put', 'put_part'] as const) bucket?.fail(operation, { kind: 'damage' }, 3)
    return nothing
  }),
  'cut a node from the storage': row(nodesOfBucket, [1000, 15_000], 3, link(storageOf, { kind: 'cut' })),
  'silence between a node and the storage': row(nodesOfBucket, [2000, 25_000], 3, link(storageOf, { kind: 'silent' })),
  'a slow way to the storage': row(nodesOfBucket, [3000, 15_000], 2, link(storageOf, SLOW)),
  'forgotten connections to the storage': row(nodesOfBucket, [0, 0], 2, forget(storageOf)),
  'cut a node from the bus': row(nodesOfBus, [1000, 15_000], 3, link(busOf, { kind: 'cut' })),
  'silence between a node and the bus': row(nodesOfBus, [2000, 25_000], 3, link(busOf, { kind: 'silent' })),
  'a slow way to the bus': row(nodesOfBus, [3000, 15_000], 2, link(busOf, SLOW)),
  'forgotten connections to the bus': row(nodesOfBus, [0, 0], 2, forget(busOf)),
  'kill NATS': row(nats, [0, 8000], 3, async ({ bus }) => {
    await bus.nats?.kill()
    return async () => bus.nats?.start()
  }),
  'freeze NATS': row(nats, [1000, 15_000], 2, async ({ bus }) => {
    bus.nats?.pause()
    return async () => bus.nats?.resume()
  }),
  'a clock that is wrong': row(nodes, [5000, 40_000], 4, async (world, name, random) => {
    const node = nodeOf(world, name)
    node.be({ clockOffsetMs: random.next() < 0.5 ? -30_000 : 30_000 })
    return async () => node.be({ clockOffsetMs: 0 })
  }),
  'a full disk': row(nodes, [2000, 10_000], 3, async (world, name) => {
    const node = nodeOf(world, name)
    node.be({ isDiskFull: true })
    return async () => node.be({ isDiskFull: false })
  }),
  'a rolling upgrade': row(
    () => ['all nodes'],
    [0, 0],
    1,
    async (world) => {
      await migrateUnderLoad(world)
      for (const node of [...world.apis, ...world.workers]) {
        await node.terminate()
        await node.start()
      }
      return nothing
    },
  ),
} as const satisfies Readonly<Record<string, FaultRow>>

function row(targets: FaultRow['targets'], ms: FaultRow['ms'], weight: number, begin: FaultRow['begin']): FaultRow {
  return { targets, ms, weight, begin }
}

async function failOver(world: World): Promise<() => Promise<void>> {
  await world.postgres.failOver()
  world.followPostgres()
  return async () => {
    world.postgres.replication.set({ kind: 'open' })
    await world.postgres.addStandby()
  }
}

async function endBackends(world: World, which: string): Promise<void> {
  const client = createClient({ url: world.databaseUrl() })
  await client.connect()
  try {
    await client.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND pid <> pg_backend_pid() AND ${which}`,
    )
  } finally {
    await client.end()
  }
}

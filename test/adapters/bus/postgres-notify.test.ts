/** The bus over a real Postgres: as every bus, as every shared bus, and when its connection breaks. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { silentLog } from '../../../lib/log.ts'
import { createClient } from '../../../lib/postgres/driver.ts'
import type { ProcessBus } from '../../../src/adapters/bus/bus-health.ts'
import { openPostgresNotifyBus } from '../../../src/adapters/bus/postgres-notify.ts'
import { testEventBus } from '../../contracts/bus/event-bus.ts'
import { testSharedBus } from '../../contracts/bus/shared-bus.ts'
import { LinkNetwork } from '../../support/bus/link-network.ts'
import { openFaultProxy } from '../../support/network/fault-proxy.ts'
import { startPostgres } from '../../support/postgres/postgres-server.ts'
import { createBareDatabase, type TestDatabase } from '../../support/postgres/test-database.ts'

const opened: ProcessBus[] = []
let nodes = 0

/** Closed by its end, or by the end of the tests. */
async function openBus(url: string, network = new LinkNetwork()): Promise<ProcessBus> {
  const node = await network.join(`node-${++nodes}`)
  const bus = await openPostgresNotifyBus({
    url,
    nodeId: node.id,
    links: node.links,
    log: silentLog,
    gatherMs: 1,
    proveMs: 200,
  })
  return {
    ...bus,
    async [Symbol.asyncDispose]() {
      await bus[Symbol.asyncDispose]()
      await node[Symbol.asyncDispose]()
    },
  }
}

async function open(url: string, network?: LinkNetwork): Promise<ProcessBus> {
  const bus = await openBus(url, network)
  opened.push(bus)
  return bus
}

async function openPair(url: string): Promise<readonly [ProcessBus, ProcessBus]> {
  const network = new LinkNetwork()
  return [await open(url, network), await open(url, network)]
}

/** Notices arrive in the order of their commits: whoever has heard itself has heard what was committed before. */
async function settle(): Promise<void> {
  const latest = opened.slice(-2)
  for (const bus of [...latest, ...latest]) assert.equal(await bus.prove(), true)
}

const untilGap = (bus: ProcessBus) => new Promise<void>((resolve) => bus.onGap(resolve))

async function untilHearing(bus: ProcessBus): Promise<void> {
  while (!bus.health().isHearing) await turn()
}

describe('the bus over Postgres', () => {
  let database: TestDatabase
  before(async () => {
    database = await createBareDatabase()
  })
  after(async () => {
    await Promise.all(opened.splice(0).map((bus) => bus[Symbol.asyncDispose]()))
    await database[Symbol.asyncDispose]()
  })

  testEventBus({ open: () => open(database.url), settle })

  testSharedBus({
    openPair: () => openPair(database.url),
    settle,
  })

  test('a connection that leads nowhere any more is noticed and opened again, and whoever uses it is told', async () => {
    const url = new URL(database.url)
    await using proxy = await openFaultProxy({ target: Number(url.port) })
    url.port = String(proxy.port)
    const near = await open(url.href)
    const far = await open(database.url)
    await untilHearing(near)
    const gaps = [near, far].map(untilGap)
    proxy.forget()
    near.publishWork('lost')
    await Promise.all(gaps)
    await untilHearing(near)
  })

  test('a connection that is ended is opened again, and whoever uses it is told that something may be lost', async () => {
    const [one, other] = [await open(database.url), await open(database.url)]
    const told = new Promise<void>((resolve) => {
      other.onWork((pool) => pool === 'after' && resolve())
    })
    const gaps = [one, other].map(untilGap)
    const client = createClient({ url: database.url })
    await client.connect()
    await client.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()`,
    )
    await client.end()
    await Promise.all(gaps)
    await Promise.all([one, other].map(untilHearing))
    one.publishWork('after')
    await told
  })
})

test('what is said while the server is away is not kept, and everybody looks again when it is back', async () => {
  await using server = await startPostgres()
  await using one = await openBus(server.url)
  await using other = await openBus(server.url)
  const heard: string[] = []
  other.onWork((pool) => heard.push(String(pool)))
  await server.stop('immediate')
  while (one.health().isHearing || other.health().isHearing) await turn()
  const gaps = [one, other].map(untilGap)
  one.publishWork('lost')
  await server.start()
  await Promise.all(gaps)
  await Promise.all([one, other].map(untilHearing))
  one.publishWork('told')
  for (const bus of [one, other]) assert.equal(await bus.prove(), true)
  assert.deepEqual(heard, ['told'])
})

test('a bus whose server is away opens all the same, and listens when it is there', async () => {
  await using server = await startPostgres()
  await server.stop('fast')
  await using bus = await openBus(server.url)
  assert.equal(bus.health().isHearing, false)
  const heard: unknown[] = []
  bus.onWork((pool) => heard.push(pool))
  bus.publishWork('at home')
  assert.deepEqual(heard, ['at home'])
  await server.start()
  await untilHearing(bus)
})

/** The bus over a real NATS server: as every bus, as every shared bus, and when the server goes. */
import assert from 'node:assert/strict'
import { mkdtempDisposableSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { connect, nkeys } from '@nats-io/transport-node'
import { silentLog } from '../../../../lib/log.ts'
import type { ProcessBus } from '../../../../src/adapters/bus/bus-health.ts'
import { openNatsBus } from '../../../../src/adapters/bus/nats/nats-bus.ts'
import type { LiveEvent } from '../../../../src/domain/events/live-event.ts'
import { testEventBus } from '../../../contracts/bus/event-bus.ts'
import { testSharedBus } from '../../../contracts/bus/shared-bus.ts'
import { findNatsProgram, type NatsServer, startNats } from '../../../support/bus/nats-server.ts'
import { waitUntil } from '../../../support/wait-until.ts'

const found = findNatsProgram()
const program = 'program' in found ? found.program : ''
const skip = 'missing' in found ? found.missing : false

let services = 0
let nodes = 0

interface BusOptions {
  readonly server: NatsServer
  readonly cluster?: string
  readonly peers?: string[]
  readonly user?: { readonly name: string; readonly password: string }
  readonly credentialsFile?: string
  readonly keys?: readonly Uint8Array[]
}

const KEY = new Uint8Array(32).fill(7)
const NEW_KEY = new Uint8Array(32).fill(8)

async function openBus({
  server,
  cluster = `service-${++services}`,
  peers = [],
  user,
  credentialsFile,
  keys = [KEY],
}: BusOptions): Promise<ProcessBus> {
  const nodeId = `node-${++nodes}`
  peers.push(nodeId)
  const others = () => peers.filter((id) => id !== nodeId)
  return openNatsBus({
    servers: [`127.0.0.1:${server.port}`],
    user: user?.name,
    password: user?.password,
    ...{ credentialsFile, cluster, nodeId, keys },
    now: () => new Date(),
    proveMs: 200,
    directory: {
      listPeers: async () => others().map((id) => ({ id, address: null })),
      findHolders: async (jobIds) => new Map(jobIds.map((jobId) => [jobId, others().slice(0, 1)])),
    },
    log: silentLog,
  })
}

async function openTwo(server: NatsServer): Promise<readonly [ProcessBus, ProcessBus]> {
  const shared = { server, cluster: `service-${++services}`, peers: [] }
  return [await openBus(shared), await openBus(shared)]
}

const NODE = { nodeId: '1', classType: 'C', displayNodeId: '1', parentNodeId: null }
const said = (text: string) => ({
  ...{ jobId: 'job', accountId: 'account' },
  event: { type: 'node_text', ...NODE, text } satisfies LiveEvent,
})

describe('the bus over NATS', { skip }, () => {
  let server: NatsServer
  const opened: ProcessBus[] = []
  before(async () => {
    server = await startNats(program)
  })
  after(async () => {
    await Promise.all(opened.map((bus) => bus[Symbol.asyncDispose]()))
    await server[Symbol.asyncDispose]()
  })
  const keep = <Buses extends readonly ProcessBus[]>(buses: Buses): Buses => {
    opened.push(...buses)
    return buses
  }
  async function settle(): Promise<void> {
    const latest = opened.slice(-2)
    for (const bus of [...latest, ...latest]) assert.equal(await bus.prove(), true)
  }

  testEventBus({ open: async () => keep([await openBus({ server })])[0], settle })
  testSharedBus({ openPair: async () => keep(await openTwo(server)), settle })

  test('services that share a server hear nothing of each other', async () => {
    const [one, other] = keep([await openBus({ server }), await openBus({ server })])
    const heard: unknown[] = []
    other.onWork((pool) => heard.push(pool))
    one.publishWork('a')
    await settle()
    assert.deepEqual(heard, [])
  })
})

test('a server that is restarted costs nothing but time: whoever relies on notices looks again, and live news go on', {
  skip,
}, async () => {
  await using server = await startNats(program)
  const buses = await openTwo(server)
  await using one = buses[0]
  await using other = buses[1]
  const heard: string[] = []
  other.onWork((pool) => heard.push(String(pool)))
  other.onLive({ jobId: 'job' }, ({ event }) => heard.push(event.type === 'node_text' ? event.text : event.type))
  one.publishLive(said('before'))
  await waitUntil(() => heard.includes('before'))
  await server.kill()
  await waitUntil(() => !one.health().isHearing && !other.health().isHearing)
  const gaps = [one, other].map((bus) => new Promise<void>((resolve) => bus.onGap(resolve)))
  one.publishWork('lost')
  one.publishLive(said('meanwhile'))
  await server.start()
  await Promise.all(gaps)
  await waitUntil(() => one.health().isHearing && other.health().isHearing)
  one.publishWork('told')
  one.publishLive(said('after'))
  await waitUntil(() => heard.includes('told') && heard.includes('after'))
  assert.deepEqual(
    heard.filter((text) => text !== 'told'),
    ['before', 'meanwhile', 'after'],
  )
  assert.equal(other.health().reconnects, 1)
})

test('a server that stands still is noticed, and heard again when it goes on', { skip }, async () => {
  await using server = await startNats(program)
  await using bus = await openBus({ server })
  assert.equal(bus.health().isHearing, true)
  server.pause()
  await waitUntil(() => !bus.health().isHearing)
  server.resume()
  await waitUntil(() => bus.health().isHearing)
})

test('a bus whose server is away opens all the same, and listens when it is there', { skip }, async () => {
  await using server = await startNats(program)
  await server.kill()
  await using bus = await openBus({ server })
  assert.equal(bus.health().isHearing, false)
  const heard: unknown[] = []
  bus.onWork((pool) => heard.push(pool))
  bus.publishWork('at home')
  assert.deepEqual(heard, ['at home'])
  await server.start()
  await waitUntil(() => bus.health().isHearing)
})

test('a server that refuses the user for a while does not end the bus', { skip }, async () => {
  await using server = await startNats(program)
  await using bus = await openBus({ server })
  await server.kill()
  let refused = 0
  const refusing = createServer((socket) => {
    socket.on('error', () => {})
    socket.write(`INFO {"server_id":"x","version":"2.15.1","max_payload":1048576,"headers":true}\r\n`)
    socket.once('data', () => {
      refused++
      socket.end(`-ERR 'Authorization Violation'\r\n`)
    })
  })
  refusing.listen(server.port, '127.0.0.1')
  await waitUntil(() => refused >= 4)
  refusing.close()
  await server.start()
  await waitUntil(() => bus.health().isHearing)
})

test('what a stranger says is not heard, nor what somebody says again', { skip }, async () => {
  await using server = await startNats(program)
  const shared = { server, cluster: 'open', peers: [] }
  await using one = await openBus(shared)
  await using other = await openBus(shared)
  await using stranger = await openBus({ ...shared, keys: [NEW_KEY], peers: [] })
  const heard: unknown[] = []
  other.onWork((pool) => heard.push(pool))
  const raw = await connect({ servers: [`127.0.0.1:${server.port}`] })
  const said: Uint8Array[] = []
  raw.subscribe('atelier.open.notices', { callback: (_error, { data }) => void said.push(data) })
  await raw.flush()
  stranger.publishWork('of a stranger')
  one.publishWork('once')
  await waitUntil(() => heard.length === 1 && said.some((data) => Buffer.from(data).includes('once')))
  for (const data of [...said, Buffer.from('w unproven'), Buffer.from('node-1\nw unproven')])
    raw.publish('atelier.open.notices', data)
  await raw.flush()
  one.publishWork('last')
  await waitUntil(() => heard.includes('last'))
  assert.deepEqual(heard, ['once', 'last'])
  await raw.close()
})

test('processes hear each other while one has the new secret key already and the other only the old one', {
  skip,
}, async () => {
  await using server = await startNats(program)
  const shared = { server, cluster: 'changing', peers: [] }
  await using changed = await openBus({ ...shared, keys: [NEW_KEY, KEY] })
  await using unchanged = await openBus(shared)
  const heard: unknown[] = []
  changed.onWork((pool) => heard.push(pool))
  unchanged.onWork((pool) => heard.push(pool))
  changed.publishWork('new')
  unchanged.publishWork('old')
  await waitUntil(() => heard.length === 4)
  assert.deepEqual(heard.toSorted(), ['new', 'new', 'old', 'old'])
})

test('a file of credentials that is half written when the server comes back does not end the bus', {
  skip,
}, async () => {
  using folder = mkdtempDisposableSync(path.join(tmpdir(), 'atelier-creds-'))
  const credentialsFile = path.join(folder.path, 'user.creds')
  const seed = new TextDecoder().decode(nkeys.createUser().getSeed())
  const whole = `-----BEGIN NATS USER JWT-----\nnot.looked.at\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`
  writeFileSync(credentialsFile, whole)
  await using server = await startNats(program)
  await using bus = await openBus({ server, credentialsFile })
  assert.equal(bus.health().isHearing, true)
  await server.kill()
  await waitUntil(() => !bus.health().isHearing)
  writeFileSync(credentialsFile, whole.slice(0, 60))
  await server.start()
  await waitUntil(() => bus.health().isHearing)
})

test('a server with a small limit carries large pictures all the same, and one that asks for a user gets it', {
  skip,
}, async () => {
  await using server = await startNats(
    program,
    'max_payload: 16384\nauthorization { user: "ann", password: "a secret" }\n',
  )
  const shared = { server, cluster: 'private', peers: [], user: { name: 'ann', password: 'a secret' } }
  await using one = await openBus(shared)
  await using other = await openBus(shared)
  const bytes = new Uint8Array(3_000_000).fill(7)
  const picture: LiveEvent = { type: 'preview', ...NODE, contentType: 'image/png', bytes, isResult: true }
  const heard: LiveEvent[] = []
  other.onLive({ accountId: 'account' }, ({ event }) => heard.push(event))
  one.publishLive({ ...said(''), event: picture })
  await waitUntil(() => heard.length === 1)
  assert.ok(heard[0].type === 'preview' && Buffer.from(bytes).equals(heard[0].bytes))
})

test('notices of one moment arrive whatever a server carries in one message, and others are told of those it cannot carry', {
  skip,
}, async () => {
  await using server = await startNats(program, 'max_payload: 1024\n')
  const shared = { server, cluster: 'small', peers: [] }
  await using one = await openBus(shared)
  await using other = await openBus(shared)
  const [heard, gaps]: [string[], string[]] = [[], []]
  other.onChanged(({ jobId }) => void heard.push(jobId))
  other.onGap(() => void gaps.push(heard.at(-1) ?? ''))
  const publish = (jobId: string, accountId = 'account') =>
    one.publishChanged({ jobId, accountId, version: 1, move: 'queued' })
  const jobIds = Array.from({ length: 300 }, (_, index) => `job-${index}-${'x'.repeat(60)}`)
  for (const jobId of jobIds) publish(jobId)
  await waitUntil(() => heard.length === jobIds.length)
  assert.deepEqual([heard, gaps], [jobIds, []])
  publish('before')
  // Each of these is three characters on the way.
  publish('%'.repeat(200), '%'.repeat(200))
  publish('behind')
  await waitUntil(() => gaps.length === 1)
  assert.deepEqual([heard.slice(jobIds.length), gaps], [['before', 'behind'], ['behind']])
})

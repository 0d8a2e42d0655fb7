/** The bus over a real NATS server: as every bus, as every shared bus, and when the server goes. */
import assert from 'node:assert/strict'
import { mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { TLSSocket } from 'node:tls'
import { connect, nkeys } from '@nats-io/transport-node'
import { silentLog } from '../../../../lib/log.ts'
import type { ProcessBus } from '../../../../src/adapters/bus/bus-health.ts'
import { openNatsBus } from '../../../../src/adapters/bus/nats/nats-bus.ts'
import type { NatsOptions } from '../../../../src/adapters/bus/nats/nats-connection.ts'
import { NatsRefusal } from '../../../../src/adapters/bus/nats/nats-mistake.ts'
import type { LiveEvent } from '../../../../src/domain/events/live-event.ts'
import { testEventBus } from '../../../contracts/bus/event-bus.ts'
import { testSharedBus } from '../../../contracts/bus/shared-bus.ts'
import {
  findNatsProgram,
  NATS_TOKEN,
  type NatsServer,
  natsCertificate,
  natsTls,
  startNats,
} from '../../../support/bus/nats-server.ts'
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
  /** Left out: what every server here wants. */
  readonly shown?: Partial<NatsOptions>
  readonly keys?: readonly Uint8Array[]
}

const KEY = new Uint8Array(32).fill(7)
const NEW_KEY = new Uint8Array(32).fill(8)

async function openBus({
  server,
  cluster = `service-${++services}`,
  peers = [],
  shown = { isEncrypted: true, rootCertificateFile: natsCertificate('authority.pem'), password: NATS_TOKEN },
  keys = [KEY],
}: BusOptions): Promise<ProcessBus> {
  const nodeId = `node-${++nodes}`
  peers.push(nodeId)
  const others = () => peers.filter((id) => id !== nodeId)
  return openNatsBus({
    servers: [`127.0.0.1:${server.port}`],
    ...shown,
    ...{ cluster, nodeId, keys },
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
    socket.write(`INFO {"server_id":"x","version":"2.15.1","max_payload":1048576,"tls_required":true}\r\n`)
    const files = {
      key: readFileSync(natsCertificate('server.key')),
      cert: readFileSync(natsCertificate('server.pem')),
    }
    const secure = new TLSSocket(socket, { isServer: true, ...files })
    secure.on('error', () => {})
    secure.once('data', () => {
      refused++
      secure.end(`-ERR 'Authorization Violation'\r\n`)
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
  const tls = { caFile: natsCertificate('authority.pem') }
  const raw = await connect({ servers: [`localhost:${server.port}`], token: NATS_TOKEN, tls })
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

const authority = { isEncrypted: true, rootCertificateFile: natsCertificate('authority.pem') }
const shownClient = { certificate: natsCertificate('client.pem'), key: natsCertificate('client.key') }

/** A seed as it lies in a file, and what a server knows of it. */
function newNkey() {
  const pair = nkeys.createUser()
  return { seed: new TextDecoder().decode(pair.getSeed()), id: pair.getPublicKey() }
}

test('a file with an nkey that is half written when the server comes back does not end the bus', { skip }, async () => {
  using folder = mkdtempDisposableSync(path.join(tmpdir(), 'atelier-creds-'))
  const credentialsFile = path.join(folder.path, 'user.nk')
  const { seed, id } = newNkey()
  writeFileSync(credentialsFile, `${seed}\n`)
  await using server = await startNats(program, { access: `authorization { users: [{ nkey: ${id} }] }\n` })
  await using bus = await openBus({ server, shown: { ...authority, credentialsFile } })
  assert.equal(bus.health().isHearing, true)
  await server.kill()
  await waitUntil(() => !bus.health().isHearing)
  writeFileSync(credentialsFile, seed.slice(0, 20))
  await server.start()
  await waitUntil(() => bus.health().isHearing)
})

test('a file of credentials, as the tools of NATS make it, opens a server that knows its operator', {
  skip,
}, async () => {
  using folder = mkdtempDisposableSync(path.join(tmpdir(), 'atelier-creds-'))
  const { access, creds } = makeOperator()
  const credentialsFile = path.join(folder.path, 'user.creds')
  writeFileSync(credentialsFile, creds.replaceAll('\n', '\r\n'))
  await using server = await startNats(program, { access })
  const shown = { ...authority, credentialsFile }
  await using bus = await openBus({ server, shown })
  await server.kill()
  await waitUntil(() => !bus.health().isHearing)
  await server.start()
  await waitUntil(() => bus.health().isHearing)
  writeFileSync(credentialsFile, makeOperator().creds)
  await assert.rejects(openBus({ server, shown }), refusedFor(/refuse the credentials of the file/))
  writeFileSync(credentialsFile, 'nothing of the kind\n')
  await assert.rejects(openBus({ server, shown }), refusedFor(/the file of credentials holds none/))
})

/** An operator, an account and a user, each signed by the one before. */
function makeOperator() {
  const [operator, account, user] = [nkeys.createOperator(), nkeys.createAccount(), nkeys.createUser()]
  const toJwt = (subject: string, name: string, by: typeof operator, nats: object) => {
    const toPart = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const claims = { jti: name, iat: 1_700_000_000, iss: by.getPublicKey(), name, sub: subject, nats }
    const text = `${toPart({ typ: 'JWT', alg: 'ed25519-nkey' })}.${toPart(claims)}`
    return `${text}.${Buffer.from(by.sign(Buffer.from(text))).toString('base64url')}`
  }
  const none = { subs: -1, data: -1, payload: -1 }
  const limits = { ...none, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 }
  const operatorJwt = toJwt(operator.getPublicKey(), 'operator', operator, { type: 'operator', version: 2 })
  const accountJwt = toJwt(account.getPublicKey(), 'account', operator, { type: 'account', version: 2, limits })
  const userJwt = toJwt(user.getPublicKey(), 'user', account, { type: 'user', version: 2, pub: {}, sub: {}, ...none })
  const seed = new TextDecoder().decode(user.getSeed())
  return {
    access: `operator: ${operatorJwt}\nresolver: MEMORY\nresolver_preload: { ${account.getPublicKey()}: ${accountJwt} }\n`,
    creds: `-----BEGIN NATS USER JWT-----\n${userJwt}\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`,
  }
}

const refusedFor = (reason: RegExp) => (error: unknown) => {
  assert.ok(error instanceof NatsRefusal, String(error))
  assert.match(error.message, reason)
  assert.ok(!/[\n]|secret|S[UAO][A-Z2-7]{30}/.test(error.message) && !error.message.includes(NATS_TOKEN), error.message)
  return true
}

test('a server that never lets this process in is told from one that is away, and it is said why', {
  skip,
}, async () => {
  await using server = await startNats(program)
  const wrong: readonly (readonly [Partial<NatsOptions>, RegExp])[] = [
    [authority, /want credentials; set ATELIER_BUS/],
    [{ ...authority, password: 'wrong-secret' }, /refuse the token; correct it in ATELIER_BUS/],
    [{ ...authority, user: 'ann', password: 'wrong-secret' }, /refuse the user and the password; correct them/],
    [{ isEncrypted: true, password: NATS_TOKEN }, /not from an authority that is trusted.*sslrootcert/],
    [
      { isEncrypted: true, rootCertificateFile: natsCertificate('stranger.pem'), password: NATS_TOKEN },
      /not from an authority that is trusted.*sslrootcert/,
    ],
    [{ password: NATS_TOKEN }, /not from an authority that is trusted/],
    [
      {
        ...authority,
        password: NATS_TOKEN,
        clientCertificateFiles: { ...shownClient, key: natsCertificate('server.key') },
      },
      /certificate or key that bus names cannot be used/,
    ],
  ]
  for (const [shown, reason] of wrong)
    await assert.rejects(openBus({ server, shown }), refusedFor(reason), String(reason))
})

test('a certificate must be for the name or the address that the server is known by', { skip }, async () => {
  await using server = await startNats(program, { tls: natsTls('localhost') })
  const shown = { ...authority, password: NATS_TOKEN }
  await assert.rejects(openBus({ server, shown }), refusedFor(/is for other names/), 'known by its address')
  await using bus = await openBus({ server, shown: { ...shown, servers: [`localhost:${server.port}`] } })
  assert.equal(bus.health().isHearing, true)
  await using plain = await startNats(program, { tls: '' })
  await assert.rejects(openBus({ server: plain, shown }), refusedFor(/do not encrypt/), 'and there must be one')
})

test('a server that asks for a certificate gets it, also when it was restarted', { skip }, async () => {
  await using server = await startNats(program, { tls: natsTls('server', ', verify: true') })
  const shown = { ...authority, password: NATS_TOKEN }
  await assert.rejects(openBus({ server, shown }), refusedFor(/refuse the certificate of this process.*sslcert/))
  await using bus = await openBus({ server, shown: { ...shown, clientCertificateFiles: shownClient } })
  await server.kill()
  await waitUntil(() => !bus.health().isHearing)
  await server.start()
  await waitUntil(() => bus.health().isHearing)
})

test('a server with a small limit carries large pictures all the same, and one that asks for a user gets it', {
  skip,
}, async () => {
  await using server = await startNats(program, {
    access: 'authorization { user: "ann", password: "a secret" }\n',
    tls: '',
    settings: 'max_payload: 16384\n',
  })
  const shared = { server, cluster: 'private', peers: [], shown: { user: 'ann', password: 'a secret' } }
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
  await using server = await startNats(program, { settings: 'max_payload: 1024\n' })
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

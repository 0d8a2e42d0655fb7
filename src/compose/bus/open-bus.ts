/** The event bus that the configuration names. One within the process is enough where one process serves the store. */
import { hostname } from 'node:os'
import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import type { BusHealth } from '../../adapters/bus/bus-health.ts'
import type { LinkDirectory } from '../../adapters/bus/live/live-links.ts'
import { createLocalBus } from '../../adapters/bus/local.ts'
import { type BusConfig, isNearAddress, type ListenerConfig } from '../../config/blocks/bus-config.ts'
import type { PostgresConfig, StoreConfig } from '../../config/blocks/store-config.ts'
import { ConfigError } from '../../config/config-error.ts'
import type { Secrets } from '../../config/secrets.ts'
import type { EventBus } from '../../domain/events/event-bus.ts'
import type { LiveEvent } from '../../domain/events/live-event.ts'
import type { Heartbeat } from '../../domain/service-nodes/heartbeat.ts'
import type { Store } from '../../domain/store.ts'
import { readServiceId } from '../engines/service-id.ts'
import { toConnection } from '../storage/open-store.ts'

interface BusDeps {
  readonly storeConfig: StoreConfig
  readonly secrets: Pick<Secrets, 'databasePassword' | 'busPassword' | 'secretKey' | 'formerSecretKeys'>
  readonly store: Pick<Store, 'jobs' | 'ensureMeta'>
  readonly heartbeat: Pick<Heartbeat, 'nodeId' | 'findLive'>
  readonly clock: Clock
  readonly log: Log
}

export interface OpenedBus extends EventBus<LiveEvent>, AsyncDisposable {
  /** null: there is no other process. */
  health(): BusHealth | null
  /** Where other processes hear this one; null: nowhere. */
  readonly address: string | null
}

export async function openBus(config: BusConfig, deps: BusDeps): Promise<OpenedBus> {
  switch (config.kind) {
    case 'local': {
      const bus = createLocalBus<LiveEvent>({ log: deps.log })
      return { ...bus, address: null, health: () => null, [Symbol.asyncDispose]: async () => {} }
    }
    case 'notify':
      return openNotifyBus(config.listener, deps)
    case 'nats':
      return openNats(config, deps)
  }
}

type NatsConfig = Extract<BusConfig, { kind: 'nats' }>

async function openNats(config: NatsConfig, deps: BusDeps): Promise<OpenedBus> {
  const { secrets, store, heartbeat, clock, log } = deps
  const { openNatsBus } = await import('../../adapters/bus/nats/nats-bus.ts')
  const { NatsRefusal } = await import('../../adapters/bus/nats/nats-mistake.ts')
  try {
    const bus = await openNatsBus({
      ...toNatsServers(config, secrets),
      cluster: await readServiceId(store),
      nodeId: heartbeat.nodeId,
      keys: toLinkKeys(secrets),
      now: () => clock.now(),
      directory: createLinkDirectory(deps),
      log,
    })
    return { ...bus, address: null }
  } catch (error) {
    if (!(error instanceof NatsRefusal)) throw error
    throw new ConfigError(`bus names ${config.servers.join(', ')}, but ${error.message}`)
  }
}

/** Where the servers are, and what they are shown. */
export function toNatsServers(config: NatsConfig, { busPassword }: Pick<Secrets, 'busPassword'>) {
  return {
    servers: config.servers,
    isEncrypted: config.isEncrypted,
    rootCertificateFile: config.rootCertificateFile ?? undefined,
    clientCertificateFiles: config.clientCertificateFiles ?? undefined,
    user: config.user ?? undefined,
    password: busPassword?.reveal(),
    credentialsFile: config.credentialsFile ?? undefined,
  }
}

async function openNotifyBus(listener: ListenerConfig, deps: BusDeps): Promise<OpenedBus> {
  const { storeConfig, secrets, heartbeat, clock, log } = deps
  // Loaded only here: a service on SQLite starts without the client library.
  const { openPostgresNotifyBus } = await import('../../adapters/bus/postgres-notify.ts')
  const { createLinkAuth } = await import('../../adapters/bus/live/link-auth.ts')
  const { LiveLinks } = await import('../../adapters/bus/live/live-links.ts')
  const { openSocketTransport } = await import('../../adapters/bus/live/socket-transport.ts')
  const { nodeId } = heartbeat
  const auth = createLinkAuth({ keys: toLinkKeys(secrets), self: nodeId, now: () => clock.now() })
  const transport = await openSocketTransport({ auth, host: listener.host, port: listener.port })
  try {
    const links = new LiveLinks({ transport, directory: createLinkDirectory(deps), log })
    const place = toConnection(storeConfig as PostgresConfig, secrets.databasePassword)
    const bus = await openPostgresNotifyBus({ ...place, nodeId, links, log })
    return {
      ...bus,
      address: listener.addressAt(transport.port),
      async [Symbol.asyncDispose]() {
        await bus[Symbol.asyncDispose]()
        await transport[Symbol.asyncDispose]()
      },
    }
  } catch (error) {
    await transport[Symbol.asyncDispose]()
    throw error
  }
}

function createLinkDirectory({ store, heartbeat }: Pick<BusDeps, 'store' | 'heartbeat'>): LinkDirectory {
  return {
    async listPeers() {
      const live = await heartbeat.findLive()
      return live
        .filter(({ id, about: { via } }) => id !== heartbeat.nodeId && via === undefined)
        .map(({ id, about: { address = null, host } }) => ({
          id,
          address: isReachable(address, host) ? address : null,
        }))
    },
    async findHolders(jobIds) {
      const holders = await store.jobs.findHolders(jobIds)
      if (holders.size === 0) return new Map()
      const live = await heartbeat.findLive()
      const joined = new Set(live.flatMap(({ id, about: { via } }) => (via === undefined ? [] : [id])))
      // A joined worker speaks through whichever process it has reached.
      const all = live.flatMap(({ id }) => (joined.has(id) || id === heartbeat.nodeId ? [] : [id]))
      const toSources = (workerId: string) => (joined.has(workerId) ? all : [workerId])
      return new Map([...holders].map(([jobId, workerId]) => [jobId, toSources(workerId)]))
    },
  }
}

/** An address of its own machine says nothing to processes on others. */
function isReachable(address: string | null, host: string): boolean {
  return address !== null && URL.canParse(address) && (host === hostname() || !isNearAddress(address))
}

// The keys by which processes of one service know each other on their live links.

/** Newest first. */
export function toLinkKeys({ secretKey, formerSecretKeys }: Pick<Secrets, 'secretKey' | 'formerSecretKeys'>) {
  return [...(secretKey === null ? [] : [secretKey]), ...formerSecretKeys].map((key) => key.reveal())
}

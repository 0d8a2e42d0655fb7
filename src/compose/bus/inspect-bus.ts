/** What `atelier doctor` learns of the bus: whether this machine reaches every process of the service, or its NATS servers. */
import { silentLog } from '../../../lib/log.ts'
import type { BusConfig } from '../../config/blocks/bus-config.ts'
import type { Secrets } from '../../config/secrets.ts'
import type { NodeAbout } from '../../domain/service-nodes/node-store.ts'
import { toLinkKeys, toNatsServers } from './open-bus.ts'

interface PeerCondition {
  /** Where it runs, for a person. */
  readonly name: string
  /** null: it is reached. */
  readonly fault: string | null
}

type BusCondition =
  | { readonly kind: 'notify'; readonly peers: readonly PeerCondition[] }
  /** `refusal`: what is wrong with what the servers are shown, or with what they show; null: nothing that is known. */
  | { readonly kind: 'nats'; readonly isReached: boolean; readonly refusal: BusRefusal | null }

interface BusRefusal {
  readonly fault: string
  readonly remedy: string
}

interface InspectOptions {
  readonly secrets: Pick<Secrets, 'secretKey' | 'formerSecretKeys' | 'busPassword'>
  readonly nodes: readonly { readonly id: string; readonly about: NodeAbout }[]
}

const WITHIN_MS = 3000

/** null: there is no bus between processes. */
export async function inspectBus(config: BusConfig, { secrets, nodes }: InspectOptions): Promise<BusCondition | null> {
  if (config.kind === 'local') return null
  if (config.kind === 'nats') return inspectNats(config, secrets)
  const { createLinkAuth } = await import('../../adapters/bus/live/link-auth.ts')
  const { dialSocket } = await import('../../adapters/bus/live/socket-transport.ts')
  const auth = createLinkAuth({ keys: toLinkKeys(secrets), self: 'doctor', now: () => new Date() })
  const peers = nodes.map(async ({ id, about: { address = null, host, role } }): Promise<PeerCondition> => {
    const name = `${role ?? 'all'} on ${host}${address === null ? '' : ` (${address})`}`
    if (address === null) return { name, fault: 'it is not heard live by anybody' }
    try {
      const events = { onFrame() {}, onClosed() {} }
      const channel = await dialSocket({ id, address }, { auth, events, signal: AbortSignal.timeout(WITHIN_MS) })
      channel.close()
      return { name, fault: null }
    } catch (error) {
      return { name, fault: error instanceof Error ? error.message : String(error) }
    }
  })
  return { kind: 'notify', peers: await Promise.all(peers) }
}

async function inspectNats(
  config: Extract<BusConfig, { kind: 'nats' }>,
  secrets: InspectOptions['secrets'],
): Promise<BusCondition> {
  const { NatsLine } = await import('../../adapters/bus/nats/nats-connection.ts')
  const { NatsRefusal } = await import('../../adapters/bus/nats/nats-mistake.ts')
  await using line = new NatsLine({
    ...toNatsServers(config, secrets),
    ...{ cluster: 'doctor', nodeId: 'doctor', log: silentLog },
    ...{ keys: toLinkKeys(secrets), now: () => new Date() },
  })
  const refusal = await line.open().then(
    () => null,
    (error: unknown) => {
      if (error instanceof NatsRefusal) return error
      throw error
    },
  )
  return { kind: 'nats', isReached: line.isUp, refusal }
}

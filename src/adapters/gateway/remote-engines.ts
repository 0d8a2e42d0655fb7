/** The registry of engines and the list of processes, as far as a joined worker has a part in them. */

import { uptimeMs } from '../../../lib/clock.ts'
import type { WantedCopy } from '../../domain/deployments/released/copy-engines.ts'
import type { EngineRegistry, EngineWill } from '../../domain/engine/directory/engine-registry.ts'
import type { BaseImage } from '../../domain/environments/builder.ts'
import { ServiceError } from '../../domain/errors.ts'
import type { NodeStore } from '../../domain/service-nodes/node-store.ts'
import { writeEngine } from '../../domain/workers/wire/engine-wire.ts'
import { writeMachine } from '../../domain/workers/wire/machine-wire.ts'
import type { GatewayClient } from './gateway-client.ts'
import { writeBaseImages } from './remote-builds.ts'

interface EnginesAnswer {
  readonly held: readonly string[]
  readonly wishes: readonly { readonly name: string; readonly will: EngineWill; readonly number: number }[]
}

interface BeatAnswer {
  readonly live: readonly string[]
  readonly time_ms: number
  /** Only for a machine that said what it is. */
  readonly copies?: readonly {
    readonly pool: string
    readonly release_id: string
    readonly gpu_class: string
    readonly engines: number
  }[]
}

/** What the machine is to have. Whose release it is, is the service's business. */
export type AssignedCopy = Omit<WantedCopy, 'accountId'>

interface RemoteEngines {
  readonly registry: Pick<EngineRegistry, 'publish' | 'putCatalog' | 'leave'>
  readonly nodes: Pick<NodeStore, 'beat' | 'leave' | 'list'>
  /** Called once for each wish of an operator, and with the present ones at the start. */
  onWish(listener: (engineId: string, will: EngineWill) => void): void
  /** What the machine makes releases with; said with every beat that comes long enough after the last one. */
  offerBuilder(images: readonly BaseImage[]): void
  /** As the service said with the latest beat; null: it has said nothing yet. */
  assigned(): readonly AssignedCopy[] | null
  readTime(): Promise<Date>
}

const CATALOG_MS = 120_000
/** The service forgets a builder that says nothing for a minute. */
const OFFER_EVERY_MS = 15_000

export function createRemoteEngines(
  client: Pick<GatewayClient, 'call' | 'hello'>,
  liveNode: () => string | null,
): RemoteEngines {
  const catalogs = new Map<string, string>()
  const obeyed = new Map<string, number>()
  let tell: (engineId: string, will: EngineWill) => void = () => {}
  async function putCatalog(hash: string, text: string): Promise<void> {
    catalogs.set(hash, text)
    const bytes = Buffer.from(text)
    await client.call({ method: 'PUT', path: `/catalogs/${hash}`, bytes, withinMs: CATALOG_MS })
  }

  function obey({ name, will, number }: EnginesAnswer['wishes'][number]): void {
    const before = obeyed.get(name)
    obeyed.set(name, number)
    if (before === undefined ? will !== 'open' : before !== number) tell(name, will)
  }

  /** What an engine can run may have been forgotten while no engine was known to have it. */
  async function restore(error: unknown): Promise<void> {
    const hash = error instanceof ServiceError ? error.details?.['catalog_hash'] : undefined
    const text = typeof hash === 'string' ? catalogs.get(hash) : undefined
    if (text === undefined) throw error
    await putCatalog(hash as string, text)
  }

  async function leave(): Promise<void> {
    await client.call({ method: 'DELETE', path: '/engines' })
  }

  return {
    registry: {
      putCatalog,
      async publish({ engines }) {
        const json = { engines: engines.map(writeEngine) }
        const publish = () => client.call<EnginesAnswer>({ method: 'PUT', path: '/engines', json })
        const answer = await publish().catch(async (error: unknown) => {
          await restore(error)
          return publish()
        })
        for (const wish of answer?.wishes ?? []) obey(wish)
        return answer?.held ?? []
      },
      leave,
    },
    ...createPresence(client, liveNode),
    onWish(listener) {
      tell = listener
    },
    readTime: async () => new Date((await client.hello()).time_ms),
  }
}

/** This process, and the machine that it offers, as they are said with every beat. */
function createPresence(
  client: Pick<GatewayClient, 'call'>,
  liveNode: () => string | null,
): Pick<RemoteEngines, 'nodes' | 'offerBuilder' | 'assigned'> {
  let live: readonly string[] = []
  let assigned: readonly AssignedCopy[] | null = null
  let offered: readonly object[] | null = null
  let offeredAtMs = Number.NEGATIVE_INFINITY

  function offerNow(): object {
    if (offered === null || uptimeMs() - offeredAtMs < OFFER_EVERY_MS) return {}
    offeredAtMs = uptimeMs()
    return { base_images: offered }
  }

  async function leave(): Promise<void> {
    await client.call({ method: 'DELETE', path: '/engines' })
  }

  return {
    nodes: {
      async beat({ about: { version, host, workers, machine } }) {
        const answer = await client.call<BeatAnswer>({
          method: 'POST',
          path: '/beats',
          json: {
            version,
            host,
            workers,
            live_node: liveNode(),
            ...(machine && { machine: { ...writeMachine(machine), ...offerNow() } }),
          },
        })
        live = answer?.live ?? []
        if (machine !== undefined) assigned = (answer?.copies ?? []).map(readAssigned)
        // Names of work are for processes of the service, and the time is asked for on its own.
        return { time: null, held: [] }
      },
      leave,
      async list() {
        // Those that the service named live; nothing else is known of them.
        const [then, always] = [new Date(0), new Date(8.64e15)]
        const about = { version: '', host: '', workers: {} }
        return live.map((id) => ({ id, startedAt: then, seenAt: then, aliveUntil: always, about }))
      },
    },
    offerBuilder(images) {
      offered = writeBaseImages(images)
    },
    assigned: () => assigned,
  }
}

function readAssigned(fields: NonNullable<BeatAnswer['copies']>[number]): AssignedCopy {
  const { pool, release_id: releaseId, gpu_class: gpuClass, engines } = fields
  return { pool, releaseId, gpuClass, engines }
}

/**
 * The engines of joined workers in the registry of all, each under a name that contains its worker's key; and the worker itself
 * among the processes of the service, so that its engines are taken over when it is gone. Every process of the service keeps them
 * in memory, so what one key may have of each is bounded.
 */
import { hash as hashOf } from 'node:crypto'
import { BoundedMap } from '../../../lib/bounded-map.ts'
import type { Clock } from '../../../lib/clock.ts'
import { createKeyedLock } from '../../../lib/waiting/semaphore.ts'
import type { Turns } from '../../../lib/waiting/turns.ts'
import { readCopyPool } from '../engine/copy-pool.ts'
import type { EngineDirectory } from '../engine/directory/engine-directory.ts'
import type { EngineRecord, EngineRegistry, EngineWill, PublishedEngine } from '../engine/directory/engine-registry.ts'
import { ServiceError } from '../errors.ts'
import { type Heartbeat, isSteady } from '../service-nodes/heartbeat.ts'
import type { MachineReport } from '../service-nodes/machine-report.ts'
import type { NodeStore } from '../service-nodes/node-store.ts'
import { mustBeCatalog } from './guest-catalog.ts'
import { toEngineId, toEngineName, toInstanceId, toNodeId } from './held-claims.ts'
import { type EngineFields, readEngine } from './wire/engine-wire.ts'
import type { WorkerIdentity } from './worker-keys.ts'
import type { WorkerReleases } from './worker-releases.ts'

interface WorkerBeat {
  readonly instanceId: string
  readonly version: string
  readonly host: string
  /** The process of the service that holds its live connection; null: none does. */
  readonly liveNode: string | null
  /** How many workers it has, by pool. */
  readonly workers: Readonly<Record<string, number>>
  /** null: no engines of releases are to be started on it. */
  readonly machine: MachineReport | null
}

interface EngineWish {
  readonly name: string
  readonly will: EngineWill
  readonly number: number
}

interface PublishedAnswer {
  /** Names of those that the process holds then. */
  readonly held: readonly string[]
  /** What operators want of the worker's engines. */
  readonly wishes: readonly EngineWish[]
}

export interface WorkerEngines {
  /**
   * Says that a process lives. Answers the processes of the same key that do. Throws forbidden where they are too many, or a machine is offered
   * under a key without the right.
   */
  beat(worker: WorkerIdentity, beat: WorkerBeat): Promise<readonly string[]>
  leave(worker: WorkerIdentity, instanceId: string): Promise<void>
  /** Throws not_found for a catalog that has not been put, forbidden where the key would have too much. */
  publish(worker: WorkerIdentity, instanceId: string, engines: readonly EngineFields[]): Promise<PublishedAnswer>
  /** Throws hash_mismatch, invalid_request, payload_too_large, rate_limited. */
  putCatalog(worker: WorkerIdentity, hash: string, bytes: Buffer): Promise<void>
}

export interface WorkerEnginesDeps {
  readonly registry: Pick<EngineRegistry, 'publish' | 'list' | 'putCatalog' | 'measureCatalogs' | 'leave' | 'forget'>
  readonly nodes: Pick<NodeStore, 'beat' | 'leave' | 'list'>
  readonly directory: Pick<EngineDirectory, 'status'>
  readonly releases: Pick<WorkerReleases, 'mayServe'>
  /** Reads the registry again. */
  readonly follow: () => Promise<void>
  readonly clock: Clock
  /** Shared with all other long work on this thread. */
  readonly turns: Turns
  /** How long a process counts as alive, and an engine as held, without a further word. */
  readonly holdMs: number
  readonly heartbeat: Pick<Heartbeat, 'nodeId' | 'steadyForMs'>
}

/** As many as one request may name: more than any machine has, and enough for many that share a key. */
const MAX_ENGINES = 256
/** Of different catalogs together; engines that can run the same share one. */
const MAX_CATALOGS_BYTES = 128 * 1024 * 1024
const MAX_PROCESSES = 1000
// What was put and is used by no engine is removed every hour.
const PUT_BYTES_PER_HOUR = 1024 * 1024 * 1024
const HOUR_MS = 3_600_000
const RETRY_SECONDS = 600
const MAX_KEYS = 10_000

export function createWorkerEngines(deps: WorkerEnginesDeps): WorkerEngines {
  const { registry, nodes, directory, clock, holdMs } = deps
  const until = (now: Date) => new Date(now.getTime() + holdMs)
  // Of one key one after the other: what each adds must be seen by the next.
  const turnOf = createKeyedLock()
  const puts = createByteBudget(PUT_BYTES_PER_HOUR, clock)

  return {
    async beat(worker, { instanceId, version, host, liveNode, workers, machine }) {
      if (machine !== null && !worker.hasBuilds)
        throw new ServiceError('forbidden', 'this key may make and serve no releases; one made with --builds may')
      const nodeId = toNodeId(worker, instanceId)
      await turnOf.run(worker.keyId, () => mustHaveRoom(deps, worker, nodeId))
      const now = clock.now()
      const own = Object.fromEntries(Object.entries(workers).filter(([pool]) => worker.pools.has(pool)))
      const via = liveNode ?? deps.heartbeat.nodeId
      const about = { version, host, role: 'worker' as const, workers: own, via, ...(machine !== null && { machine }) }
      await nodes.beat({ id: nodeId, now, aliveUntil: until(now), about })
      const live = (await nodes.list()).filter(({ aliveUntil }) => aliveUntil > now)
      return live.flatMap(({ id }) => toInstanceId(worker, id) ?? [])
    },
    async leave(worker, instanceId) {
      const nodeId = toNodeId(worker, instanceId)
      await registry.leave(nodeId)
      await nodes.leave(nodeId)
    },
    publish: (worker, instanceId, fields) =>
      turnOf.run(worker.keyId, async () => {
        const suffix = toEngineId(worker, '')
        const known = (await registry.list()).filter(({ status: { id } }) => id.endsWith(suffix))
        const engines = (await ownOf(deps, worker, { instanceId, fields })).map((each) =>
          readEngine(each, toEngineId(worker, each.name)),
        )
        await mustFit(deps, known, engines)
        const now = clock.now()
        const held = await registry.publish({
          ...{ nodeId: toNodeId(worker, instanceId), engines, now, until: until(now) },
          takesLapsed: isSteady(deps.heartbeat),
        })
        // Its first claim comes soon, and must find it known.
        const isKnown = new Set(directory.status().map(({ id }) => id))
        if (held.some((id) => !isKnown.has(id))) await deps.follow()
        return {
          held: held.map((id) => toEngineName(worker, id)),
          wishes: known.map(({ status: { id }, will, willNumber }) => ({
            ...{ name: toEngineName(worker, id), will, number: willNumber },
          })),
        }
      }),
    async putCatalog({ keyId }, hash, bytes) {
      if (hashOf('sha256', bytes, 'base64url') !== hash) {
        throw new ServiceError('hash_mismatch', 'the catalog does not have the hash that was said')
      }
      if ((await registry.measureCatalogs([hash])).has(hash)) return
      puts.mustTake(keyId, bytes.length)
      await mustBeCatalog(bytes, deps.turns)
      await registry.putCatalog(hash, bytes.toString('utf8'))
    },
  }
}

/** Without engines for copies that the machine is not to serve any more, or never was. */
async function ownOf(
  { releases }: Pick<WorkerEnginesDeps, 'releases'>,
  worker: WorkerIdentity,
  { instanceId, fields }: { readonly instanceId: string; readonly fields: readonly EngineFields[] },
): Promise<readonly EngineFields[]> {
  const own: EngineFields[] = []
  for (const each of fields) {
    const pool = copyPoolOf(each.name)
    if (pool === null || (await releases.mayServe(worker, instanceId, pool))) own.push(each)
  }
  return own
}

function copyPoolOf(name: string): string | null {
  const [pool = ''] = name.split('/', 1)
  return readCopyPool(pool) === null ? null : pool
}

async function mustHaveRoom(
  { nodes, clock }: Pick<WorkerEnginesDeps, 'nodes' | 'clock'>,
  worker: WorkerIdentity,
  nodeId: string,
): Promise<void> {
  const own = (await nodes.list()).filter(({ id }) => toInstanceId(worker, id) !== null)
  if (own.length < MAX_PROCESSES || own.some(({ id }) => id === nodeId)) return
  const gone = own.filter(({ aliveUntil }) => aliveUntil <= clock.now())
  if (gone.length === 0) throw new ServiceError('forbidden', `a key may have ${MAX_PROCESSES} processes`)
  for (const { id } of gone) await nodes.leave(id)
}

/** `known`: those of the key that are registered. Those that no process holds any more give way. */
async function mustFit(
  { registry, clock }: Pick<WorkerEnginesDeps, 'registry' | 'clock'>,
  known: readonly EngineRecord[],
  engines: readonly PublishedEngine[],
): Promise<void> {
  const said = new Map(engines.map(({ status: { id }, catalogHash }) => [id, catalogHash]))
  const rest = known.filter(({ status: { id } }) => !said.has(id))
  const now = clock.now()
  const live = rest.filter(({ heldUntil }) => heldUntil > now)
  const sizes = await registry.measureCatalogs(hashesOf([...engines, ...rest]))
  const missing = hashesOf(engines).find((hash) => !sizes.has(hash))
  if (missing !== undefined) {
    throw new ServiceError('not_found', 'put what the engine can run first', { details: { catalog_hash: missing } })
  }
  const fits = (others: readonly PublishedEngine[]) =>
    said.size + others.length <= MAX_ENGINES &&
    hashesOf([...engines, ...others]).reduce((sum, hash) => sum + (sizes.get(hash) ?? 0), 0) <= MAX_CATALOGS_BYTES
  if (fits(rest)) return
  if (!fits(live)) {
    const bound = `${MAX_ENGINES} engines, and ${MAX_CATALOGS_BYTES} bytes of what they can run`
    throw new ServiceError('forbidden', `a key may have ${bound}`)
  }
  const lapsed = rest.filter(({ heldUntil }) => heldUntil <= now).map(({ status: { id } }) => id)
  await registry.forget({ sharedBefore: NEVER, ownBefore: NEVER, engineIds: lapsed })
}

const NEVER = new Date(0)

function hashesOf(engines: readonly PublishedEngine[]): string[] {
  return [...new Set(engines.flatMap(({ catalogHash }) => catalogHash ?? []))]
}

/** How much each key may bring in an hour. */
function createByteBudget(perHour: number, clock: Clock) {
  const used = new BoundedMap<string, { readonly hour: number; readonly bytes: number }>(MAX_KEYS)
  return {
    /** Throws rate_limited. */
    mustTake(keyId: string, bytes: number): void {
      const hour = Math.floor(clock.now().getTime() / HOUR_MS)
      const before = used.get(keyId)
      const sum = bytes + (before?.hour === hour ? before.bytes : 0)
      if (sum > perHour) {
        throw new ServiceError('rate_limited', `a key may bring ${perHour} bytes of catalogs an hour`, {
          retryAfterSeconds: RETRY_SECONDS,
        })
      }
      used.set(keyId, { hour, bytes: sum })
    },
  }
}

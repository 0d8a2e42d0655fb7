/**
 * Publishes the engines of this process in the registry, and thereby takes those that nobody else drives and keeps those that it
 * drives. What an engine can run is written only when it has changed. An engine that was just taken is taken over before it gets work.
 */
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import type { ObjectInfo } from '../../../../engine/graph/object-info.ts'
import type { Clock } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import { type Heartbeat, isSteady } from '../../service-nodes/heartbeat.ts'
import type { Fleet, PublishableEngine } from '../fleet/fleet.ts'
import type { ContestedLeases } from '../fleet/fleet-engine.ts'
import type { WeightFile } from '../weights/weight-files.ts'
import { type CatalogText, writeCatalog } from './catalog-text.ts'
import type { EngineRegistry, PublishedEngine } from './engine-registry.ts'

interface PublisherDeps {
  readonly registry: Pick<EngineRegistry, 'publish' | 'putCatalog' | 'leave'>
  readonly fleet: Pick<Fleet, 'publishable' | 'announce' | 'engines' | 'onChange'>
  /** null: this process is alone, and drives all its engines without asking. */
  readonly leases: ContestedLeases | null
  readonly heartbeat: Pick<Heartbeat, 'nodeId' | 'steadyForMs'>
  readonly clock: Clock
  readonly log: Log
}

interface EnginePublisher extends AsyncDisposable {
  /** Publishes now, after whatever publication is under way. What an engine can run is published when it changes, too. */
  publish(): Promise<void>
  /** For every beat: publishes unless all that is to be said was said lately, and all engines are held here. */
  publishNews(): Promise<void>
}

/** As long as a job's lease: after it, another process may drive the engine. */
const HOLD_MS = 30_000
/** Every second beat, and well before holds lapse. Less than two beats, so that a late one does not make it every third. */
const SAID_LATELY_MS = 8000
/** A catalog is put again now and then: it may have been removed while no engine was known to have it. */
const PUT_AGAIN_MS = 3_600_000

/** For a process that is certainly alone: an engine is free again as soon as the process ends. */
const AT_ONCE = new Date(0)

export function createEnginePublisher(deps: PublisherDeps): EnginePublisher {
  const { registry, fleet, leases, heartbeat, clock, log } = deps
  const { nodeId } = heartbeat
  const texts = new WeakMap<
    ObjectInfo,
    { readonly weights: readonly WeightFile[] | null; readonly text: CatalogText }
  >()
  const putAt = new Map<string, number>()
  let latest: Promise<void> = Promise.resolve()
  let isOver = false
  let known: readonly (NodeCatalog | null)[] = []
  let said: { readonly words: string; readonly atMs: number } | null = null

  function toText({ own, weights }: Pick<PublishableEngine, 'own' | 'weights'>, info: ObjectInfo): CatalogText {
    const before = texts.get(info)
    if (before !== undefined && before.weights === weights) return before.text
    const text = writeCatalog(info, own, weights)
    texts.set(info, { weights, text })
    return text
  }

  async function putOnce({ hash, text }: CatalogText): Promise<void> {
    const nowMs = clock.now().getTime()
    if (nowMs - (putAt.get(hash) ?? Number.NEGATIVE_INFINITY) < PUT_AGAIN_MS) return
    await registry.putCatalog(hash, text)
    putAt.set(hash, nowMs)
  }

  async function publishNow({ onlyNews }: { readonly onlyNews: boolean }): Promise<void> {
    if (isOver) return
    known = fleet.engines().map((engine) => engine.catalog())
    // Alone, the built-in engine need not be remembered: it is there when the process is.
    const publishable = fleet.publishable().filter(({ own }) => leases !== null || own === null)
    const engines: PublishedEngine[] = []
    for (const engine of publishable) {
      const { isShared, info, status } = engine
      const catalog = info === null ? null : toText(engine, info)
      if (catalog !== null) await putOnce(catalog)
      engines.push({ isShared, status, catalogHash: catalog?.hash ?? null })
    }
    const now = clock.now()
    const until = leases === null ? AT_ONCE : new Date(now.getTime() + HOLD_MS)
    const words = JSON.stringify(engines)
    const isSaid = said !== null && said.words === words && now.getTime() - said.atMs < SAID_LATELY_MS
    if (isSaid && onlyNews && engines.every(({ status }) => leases?.isDriven(status.id) ?? true)) return
    said = null
    const held = await registry.publish({ nodeId, engines, now, until, takesLapsed: isSteady(heartbeat) })
    said = { words, atMs: now.getTime() }
    if (leases === null) return
    const taken = leases.hold(held, until)
    await Promise.all(
      publishable
        .filter(({ status }) => taken.includes(status.id))
        .map(({ status, takeOver }) => takeOne(status.id, takeOver)),
    )
    // Workers may have gained an engine, or lost one.
    fleet.announce()
  }

  async function takeOne(engineId: string, takeOver: () => Promise<void>): Promise<void> {
    try {
      await takeOver()
      leases?.drive(engineId)
      log.info({ engine: engineId }, 'this process drives an engine from now on')
    } catch (error) {
      log.warn({ err: error, engine: engineId }, 'an engine could not be taken over yet')
    }
  }

  function publishInTurn(options: { readonly onlyNews: boolean }): Promise<void> {
    const published = latest.then(() => publishNow(options))
    latest = published.catch(() => {})
    return published
  }

  const publish = () => publishInTurn({ onlyNews: false })

  const unsubscribe = fleet.onChange(() => {
    const catalogs = fleet.engines().map((engine) => engine.catalog())
    if (catalogs.every((catalog, index) => catalog === known[index])) return
    known = catalogs
    publish().catch((error) => log.warn({ err: error }, 'engines could not be published; the next time tries again'))
  })

  return {
    publish,
    publishNews: () => publishInTurn({ onlyNews: true }),
    async [Symbol.asyncDispose]() {
      isOver = true
      unsubscribe()
      await latest
      if (leases === null) return
      leases.hold([], AT_ONCE)
      await registry.leave(nodeId).catch((error) => log.warn({ err: error }, 'engines could not be given up'))
    },
  }
}

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

/** As long as a job's lease: after it, another process may drive the engine. */
const HOLD_MS = 30_000
/** Every second beat, and well before holds lapse. Less than two beats, so that a late one does not make it every third. */
const SAID_LATELY_MS = 8000
/** A catalog is put again now and then: it may have been removed while no engine was known to have it. */
const PUT_AGAIN_MS = 3_600_000

/** For a process that is certainly alone: an engine is free again as soon as the process ends. */
const AT_ONCE = new Date(0)

export class EnginePublisher implements AsyncDisposable {
  readonly #deps: PublisherDeps
  readonly #texts = new WeakMap<
    ObjectInfo,
    { readonly weights: readonly WeightFile[] | null; readonly text: CatalogText }
  >()
  readonly #putAt = new Map<string, number>()
  #latest: Promise<void> = Promise.resolve()
  #isOver = false
  #known: readonly (NodeCatalog | null)[] = []
  #said: { readonly words: string; readonly atMs: number } | null = null
  readonly #unsubscribe: () => void

  constructor(deps: PublisherDeps) {
    this.#deps = deps
    this.#unsubscribe = deps.fleet.onChange(() => {
      const catalogs = deps.fleet.engines().map((engine) => engine.catalog())
      if (catalogs.every((catalog, index) => catalog === this.#known[index])) return
      this.#known = catalogs
      this.publish().catch((error) =>
        deps.log.warn({ err: error }, 'engines could not be published; the next time tries again'),
      )
    })
  }

  /** Publishes now, after whatever publication is under way. What an engine can run is published when it changes, too. */
  publish(): Promise<void> {
    return this.#publishInTurn({ onlyNews: false })
  }

  /** For every beat: publishes unless all that is to be said was said lately, and all engines are held here. */
  publishNews(): Promise<void> {
    return this.#publishInTurn({ onlyNews: true })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { leases, registry, heartbeat, log } = this.#deps
    this.#isOver = true
    this.#unsubscribe()
    await this.#latest
    if (leases === null) return
    leases.hold([], AT_ONCE)
    await registry.leave(heartbeat.nodeId).catch((error) => log.warn({ err: error }, 'engines could not be given up'))
  }

  #toText({ own, weights }: Pick<PublishableEngine, 'own' | 'weights'>, info: ObjectInfo): CatalogText {
    const before = this.#texts.get(info)
    if (before !== undefined && before.weights === weights) return before.text
    const text = writeCatalog(info, own, weights)
    this.#texts.set(info, { weights, text })
    return text
  }

  async #putOnce({ hash, text }: CatalogText): Promise<void> {
    const nowMs = this.#deps.clock.now().getTime()
    if (nowMs - (this.#putAt.get(hash) ?? Number.NEGATIVE_INFINITY) < PUT_AGAIN_MS) return
    await this.#deps.registry.putCatalog(hash, text)
    this.#putAt.set(hash, nowMs)
  }

  async #publishNow({ onlyNews }: { readonly onlyNews: boolean }): Promise<void> {
    const { fleet, leases, clock, registry, heartbeat } = this.#deps
    if (this.#isOver) return
    this.#known = fleet.engines().map((engine) => engine.catalog())
    // Alone, the built-in engine need not be remembered: it is there when the process is.
    const publishable = fleet.publishable().filter(({ own }) => leases !== null || own === null)
    const engines: PublishedEngine[] = []
    for (const engine of publishable) {
      const { isShared, info, status } = engine
      const catalog = info === null ? null : this.#toText(engine, info)
      if (catalog !== null) await this.#putOnce(catalog)
      engines.push({ isShared, status, catalogHash: catalog?.hash ?? null })
    }
    const now = clock.now()
    const until = leases === null ? AT_ONCE : new Date(now.getTime() + HOLD_MS)
    const words = JSON.stringify(engines)
    const isSaid = this.#said !== null && this.#said.words === words && now.getTime() - this.#said.atMs < SAID_LATELY_MS
    if (isSaid && onlyNews && engines.every(({ status }) => leases?.isDriven(status.id) ?? true)) return
    this.#said = null
    const held = await registry.publish({
      nodeId: heartbeat.nodeId,
      engines,
      now,
      until,
      takesLapsed: isSteady(heartbeat),
    })
    this.#said = { words, atMs: now.getTime() }
    if (leases === null) return
    const taken = leases.hold(held, until)
    await Promise.all(
      publishable
        .filter(({ status }) => taken.includes(status.id))
        .map(({ status, takeOver }) => this.#takeOne(status.id, takeOver)),
    )
    // Workers may have gained an engine, or lost one.
    fleet.announce()
  }

  async #takeOne(engineId: string, takeOver: () => Promise<void>): Promise<void> {
    const { leases, log } = this.#deps
    try {
      await takeOver()
      leases?.drive(engineId)
      log.info({ engine: engineId }, 'this process drives an engine from now on')
    } catch (error) {
      log.warn({ err: error, engine: engineId }, 'an engine could not be taken over yet')
    }
  }

  #publishInTurn(options: { readonly onlyNews: boolean }): Promise<void> {
    const published = this.#latest.then(() => this.#publishNow(options))
    this.#latest = published.catch(() => {})
    return published
  }
}

/** Engines of releases: processes that are started from a release's folder, each as a member of the fleet for the jobs of its copy alone. */
import { lchown, mkdir, rm } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import type { Tracer } from '../../../lib/tracing/tracer.ts'
import type { ComfyBounds, Equip } from '../../adapters/engines/comfyui/comfy-bounds.ts'
import { SleepingEngine } from '../../adapters/engines/comfyui/launch/sleeping-engine.ts'
import type { FleetConfig } from '../../config/blocks/fleet-config.ts'
import type { CopyEngines, CopyState, WantedCopy } from '../../domain/deployments/released/copy-engines.ts'
import type { Fleet } from '../../domain/engine/fleet/fleet.ts'
import type { RememberedEngine } from '../../domain/engine/fleet/fleet-member.ts'
import type { BringRelease, ReleasePlace } from '../../domain/environments/bring-release.ts'
import type { Builder, ReleaseFolder } from '../../domain/environments/builder.ts'
import { targetOfClass } from '../../domain/environments/fit.ts'

import { toCopyEngineName } from './open-directory.ts'

/** A release on this machine, and what its engines run on. */
export interface StartableRelease extends ReleaseFolder {
  /** They compute without a graphics card. */
  readonly isForCpu: boolean
}

export function createFindStartable(builder: Pick<Builder, 'targets' | 'find'>): CopyEnginesParts['findRelease'] {
  return async (releaseId, gpuClass) => {
    const target = targetOfClass(gpuClass, builder)
    const folder = target === null ? null : await builder.find(releaseId, target)
    return folder === null ? null : { ...folder, isForCpu: target?.gpu === 'cpu' }
  }
}

/** How long engines of releases may be silent, as those of the fleet. */
export function toCopyBounds(fleet: FleetConfig): Partial<ComfyBounds> {
  return {
    unreachableMs: fleet.lostAfterMs,
    stallMs: fleet.stallAfterMs,
    idleMs: fleet.idleAfterMs,
    queueStillMs: fleet.queueAfterMs,
  }
}

interface CopyEnginesParts {
  readonly fleet: Pick<Fleet, 'add' | 'remove' | 'isUnused' | 'cordon' | 'resume' | 'claimExclusively'>
  /** null: it is not on this machine. */
  readonly findRelease: (releaseId: string, gpuClass: string) => Promise<StartableRelease | null>
  readonly bring: BringRelease['bring']
  readonly recall: (engineId: string) => Promise<RememberedEngine | null>
  /** How many engines may be up at a time. */
  readonly room: number
  /** For what engines write: each has a folder in it. */
  readonly folder: string
  /** The id of an engine, by which all processes know it. */
  readonly toEngineId: (name: string) => string
  readonly env: NodeJS.ProcessEnv
  readonly equip?: Equip
  readonly bounds: Partial<ComfyBounds>
  readonly owner: { readonly ownerId: string; readonly instanceId: string }
  readonly tracer?: Tracer
  readonly clock: Clock
  readonly log: Log
}

/** Tried so often, it will not start at another time either. */
const MAX_FAILURES = 3

export class CopyProcesses implements CopyEngines, AsyncDisposable {
  readonly room: number
  readonly #parts: CopyEnginesParts
  readonly #copies = new Map<string, SleepingEngine[]>()
  /** Those that begin or end just now. */
  readonly #underway = new Map<SleepingEngine, Promise<void>>()
  /** Those that get no more work. */
  readonly #letGo = new Set<string>()

  constructor(parts: CopyEnginesParts) {
    this.#parts = parts
    this.room = parts.room
  }

  place(accountId: string, releaseId: string, gpuClass: string): Promise<ReleasePlace> {
    return this.#parts.bring(accountId, releaseId, gpuClass)
  }

  async keep(wanted: readonly WantedCopy[]): Promise<void> {
    const isWanted = new Set(wanted.map(({ pool }) => pool))
    for (const pool of [...this.#copies.keys()]) if (!isWanted.has(pool)) await this.#forget(pool)
    const listed = []
    for (const copy of wanted) {
      const members = await this.#enginesOf(copy)
      // Those that are up stay, as far as some may.
      const order = members.toSorted((one, other) => Number(other.waking().isUp) - Number(one.waking().isUp))
      listed.push({ up: order.slice(0, copy.engines), down: order.slice(copy.engines) })
    }
    for (const { down } of listed) for (const engine of down) this.#bringDown(engine)
    for (const { up } of listed) for (const engine of up) this.#bringUp(engine)
  }

  letGo(): Promise<void> {
    return this.keep([])
  }

  look(pool: string): CopyState {
    return toState(this.#copies.get(pool) ?? [], (engine) => this.#isBusy(engine))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#underway.values())
    await Promise.all(this.#all().map((engine) => engine[Symbol.asyncDispose]()))
  }

  #all(): SleepingEngine[] {
    return [...this.#copies.values()].flat()
  }

  #isBusy({ id }: SleepingEngine): boolean {
    return !this.#parts.fleet.isUnused(id)
  }

  async #enginesOf({ pool, releaseId, gpuClass, engines }: WantedCopy): Promise<SleepingEngine[]> {
    const { fleet, recall, findRelease, toEngineId } = this.#parts
    const known = this.#copies.get(pool) ?? []
    this.#copies.set(pool, known)
    // One at least, so that what the copy can run is known also before its first engine is up.
    const count = Math.max(1, engines)
    const release = known.length < count ? await findRelease(releaseId, gpuClass) : null
    while (release !== null && known.length < count) {
      const id = toEngineId(toCopyEngineName(pool, known.length + 1))
      const engine = new SleepingEngine(await toOptions(this.#parts, { id, pool, release }))
      fleet.add(engine, await recall(id))
      known.push(engine)
    }
    return known
  }

  #bringUp(engine: SleepingEngine): void {
    if (this.#letGo.delete(engine.id)) this.#parts.fleet.resume(engine.id)
    if (engine.waking().isUp || this.#underway.has(engine)) return
    const up = this.#all().filter((other) => other.waking().isUp || this.#underway.has(other))
    if (up.length < this.room) this.#inBackground(engine, () => engine.wake())
  }

  /** Gets no more work from now on, and ends once its last run has. */
  #bringDown(engine: SleepingEngine): void {
    if (!engine.waking().isUp || this.#underway.has(engine)) return
    if (!this.#letGo.has(engine.id)) {
      this.#letGo.add(engine.id)
      this.#parts.fleet.cordon(engine.id)
    }
    if (!this.#isBusy(engine)) this.#inBackground(engine, () => this.#sleepUnused(engine))
  }

  async #sleepUnused(engine: SleepingEngine): Promise<void> {
    // A claim that began before may still bring a run; the next look tries again.
    await this.#parts.fleet.claimExclusively(engine, async () => false)
    if (!this.#isBusy(engine)) await engine.sleep()
  }

  async #forget(pool: string): Promise<void> {
    const engines = this.#copies.get(pool) ?? []
    for (const engine of engines) this.#bringDown(engine)
    if (engines.some((engine) => engine.waking().isUp || this.#underway.has(engine))) return
    this.#copies.delete(pool)
    for (const { id } of engines) {
      this.#letGo.delete(id)
      this.#parts.fleet.remove(id)
      await rm(folderOf(this.#parts, id), { recursive: true, force: true })
    }
  }

  #inBackground(engine: SleepingEngine, act: () => Promise<void>): void {
    const done = act()
      .catch((error) =>
        this.#parts.log.error({ err: error, engine: engine.id }, 'an engine of a release did not begin or end'),
      )
      .finally(() => this.#underway.delete(engine))
    this.#underway.set(engine, done)
  }
}

function toState(engines: readonly SleepingEngine[], isBusy: (engine: SleepingEngine) => boolean): CopyState {
  const wakings = engines.map((engine) => ({ ...engine.waking(), isBusy: isBusy(engine) }))
  const ready = wakings.filter(({ isReady }) => isReady)
  const failed = wakings.find(({ failures }) => failures >= MAX_FAILURES)
  return {
    up: wakings.filter(({ isUp }) => isUp).length,
    ready: ready.length,
    busy: ready.filter((waking) => waking.isBusy).length,
    failure: ready.length > 0 ? null : (failed?.lastFailure ?? null),
  }
}

interface NewEngine {
  readonly id: string
  readonly pool: string
  readonly release: StartableRelease
}

const WRITTEN = ['output', 'input', 'temp', 'user'] as const

function folderOf({ folder }: CopyEnginesParts, id: string): string {
  return join(folder, id.replaceAll('/', '-'))
}

/** The release's own folder is shared by all its engines and never written to. */
async function toOptions(parts: CopyEnginesParts, { id, pool, release }: NewEngine) {
  const own = folderOf(parts, id)
  for (const name of WRITTEN) await mkdir(join(own, name), { recursive: true })
  const { user = null } = release
  if (user !== null) for (const name of ['', ...WRITTEN]) await lchown(join(own, name), user.uid, user.gid)
  const programs = dirname(release.python)
  const folders = WRITTEN.flatMap((name) => [`--${name}-directory`, join(own, name)])
  const command = [
    ...[release.python, join(release.comfyui, 'main.py'), '--listen', '127.0.0.1', '--port', '{port}'],
    ...['--disable-auto-launch', ...folders, ...(release.isForCpu ? ['--cpu'] : [])],
  ] as [string, ...string[]]
  const { env, equip, bounds, owner, tracer, clock, log } = parts
  return {
    ...{ id, pool, bounds, clock, log, ...owner },
    ...(equip !== undefined && { equip }),
    ...(tracer !== undefined && { tracer }),
    server: {
      kind: 'supervised' as const,
      command,
      cwd: release.comfyui,
      user,
      env: {
        ...env,
        ...(user !== null && homeIn(own)),
        VIRTUAL_ENV: dirname(programs),
        PATH: [programs, env['PATH'] ?? ''].join(delimiter),
      },
    },
  }
}

/** Nothing of the account that runs the service is another user's business. */
function homeIn(folder: string): NodeJS.ProcessEnv {
  const gone = ['USER', 'LOGNAME', 'XDG_CACHE_HOME', 'XDG_CONFIG_HOME', 'XDG_DATA_HOME', 'XDG_RUNTIME_DIR']
  return { ...Object.fromEntries(gone.map((name) => [name, undefined])), HOME: folder }
}

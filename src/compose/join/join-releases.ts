/**
 * Releases on a machine that joined: it says what it is and what has become of the copies that it was told to have, makes their folders,
 * starts their engines and takes their jobs. Whatever it is not told any more ends, each engine when its run has.
 */
import { mkdir, readdir, rm, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../../lib/clock.ts'
import { takeLock, tryLock } from '../../../lib/files/file-lock.ts'
import { newUuidV4 } from '../../../lib/ids.ts'
import type { Log } from '../../../lib/log.ts'
import type { Tracer } from '../../../lib/tracing/tracer.ts'
import { sleep } from '../../../lib/waiting/sleep.ts'
import { createRemoteBuilds } from '../../adapters/gateway/remote-builds.ts'
import type { AssignedCopy } from '../../adapters/gateway/remote-engines.ts'
import { createRemoteReleases } from '../../adapters/gateway/remote-releases.ts'
import type { BuilderConfig } from '../../config/blocks/builder-config.ts'
import { readChildEnvironment } from '../../config/child-environment.ts'
import type { Config } from '../../config/config.ts'
import { ConfigError } from '../../config/config-error.ts'
import type { Secrets } from '../../config/secrets.ts'
import type { PoolWorkers } from '../../domain/deployments/lifecycle.ts'
import type { CopyEngines } from '../../domain/deployments/released/copy-engines.ts'
import type { Fleet } from '../../domain/engine/fleet/fleet.ts'
import { type BringRelease, createBringRelease, type ReleasePlace } from '../../domain/environments/bring-release.ts'
import { buildOne, REST_MS } from '../../domain/environments/build-one.ts'
import type { Builder } from '../../domain/environments/builder.ts'
import { targetText } from '../../domain/environments/definition.ts'
import { isStoreAway } from '../../domain/errors.ts'
import type { Heartbeat } from '../../domain/service-nodes/heartbeat.ts'
import type { MachineReport, ReportedCopy } from '../../domain/service-nodes/machine-report.ts'
import { CopyProcesses, createFindStartable, toCopyBounds } from '../engines/copy-engines.ts'
import { toEngineId } from '../engines/open-engines.ts'
import { openConfiguredBuilder, readCuda } from '../open-builder.ts'
import type { JoinedService } from './open-join.ts'

export interface JoinReleasesParts {
  readonly service: JoinedService
  readonly version: string
  readonly secrets: Pick<Secrets, 'builderHeaders'>
  /** For tests: takes the place of the one that the configuration names. */
  readonly builder?: Builder & AsyncDisposable
  readonly log: Log
}

export interface JoinedReleases extends AsyncDisposable {
  /** For the next beat. */
  report(): MachineReport
  /** Has no room any more: what it serves moves to other machines. */
  withdraw(): void
  /** Begins to do what the service says; until that is disposed of. */
  start(here: ReleasesHere): AsyncDisposable
}

/** What there is once the fleet is open. */
interface ReleasesHere {
  readonly fleet: Fleet
  readonly heartbeat: Heartbeat
  readonly workers: Omit<PoolWorkers, 'count'> & {
    drain(options: { readonly deadline: Date }): Promise<void>
  }
  readonly tracer: Tracer | undefined
}

const LOOK_MS = 1000
const BUILD_EVERY_MS = 3000
/** As the service gives it. */
const BUILD_LEASE_MS = 60_000
const TIDY_EVERY_MS = 600_000
/** The service hears of a folder that was just made with the next beat. */
const KEEP_YOUNG_MS = 600_000
/** A build that was interrupted goes on with the models that it had fetched. */
const KEEP_FETCHED_MS = 86_400_000
/** What could not be made is tried again later, should it still be wanted. */
const TRY_AGAIN_MS = 60_000

/** Throws ConfigError when the key may not. */
export async function openJoinReleases(
  config: Config,
  { builder: configured }: { readonly builder: BuilderConfig },
  parts: JoinReleasesParts,
): Promise<JoinedReleases> {
  const { service } = parts
  if (service.hello.builds !== true)
    throw new ConfigError(
      'the key of this worker may make and serve no releases; make one with: atelier workers create --builds',
    )
  const builder =
    parts.builder ??
    (await openConfiguredBuilder({ builder: configured, fleet: config.fleet }, { ...parts, network: null }))
  const own = await openOwnFolder(join(configured.directory, 'engines'), service.instanceId)
  const freeNow = await freeBytes(configured.directory)
  return new JoinReleases({ ...parts, config, builder, directory: configured.directory, own, freeNow })
}

interface Parts extends JoinReleasesParts {
  readonly config: Config
  readonly builder: Builder & AsyncDisposable
  readonly directory: string
  readonly own: OwnFolder
  readonly freeNow: number
}

class JoinReleases implements JoinedReleases {
  readonly #parts: Parts
  readonly #remote: ReturnType<typeof createRemoteReleases>
  readonly #builds: ReturnType<typeof createRemoteBuilds>
  readonly #bringing: BringRelease
  readonly #places: ReturnType<typeof createPlaces>
  readonly #ending = new AbortController()
  #freeBytes: number
  #copies: CopyEngines | null = null
  #wanted: readonly AssignedCopy[] = []
  #isWithdrawn = false

  constructor(parts: Parts) {
    const { service, builder, log, freeNow } = parts
    this.#parts = parts
    this.#freeBytes = freeNow
    this.#remote = createRemoteReleases(service.client)
    this.#bringing = createBringRelease({ find: this.#remote.find, builder, log })
    this.#builds = createRemoteBuilds(service.client)
    service.engines.offerBuilder(builder.baseImages)
    this.#places = createPlaces(this.#bringing.bring, { clock: service.clock, log })
  }

  report(): MachineReport {
    const { builder, config } = this.#parts
    const copies = this.#copies
    return {
      targets: builder.targets.map(targetText),
      cuda: readCuda(),
      room: this.#isWithdrawn ? 0 : config.fleet.copies.room,
      freeBytes: this.#freeBytes,
      copies:
        copies === null
          ? []
          : this.#wanted.map(({ pool }) => ({ pool, ...this.#places.of(pool), ...copies.look(pool) })),
    }
  }

  withdraw(): void {
    this.#isWithdrawn = true
  }

  start(here: ReleasesHere): AsyncDisposable {
    const engines = this.#openCopies(here)
    this.#copies = engines
    const { service } = this.#parts
    const looking = this.#repeat(LOOK_MS, () => this.#look(here, engines))
    const tidying = this.#repeat(TIDY_EVERY_MS, () => this.#tidy())
    const building = this.#repeat(BUILD_EVERY_MS, () => this.#buildNext())
    return {
      [Symbol.asyncDispose]: async () => {
        this.#ending.abort()
        await Promise.all([looking, tidying, building])
        await here.workers.drain({ deadline: service.clock.now() })
        await engines[Symbol.asyncDispose]()
      },
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#bringing[Symbol.asyncDispose]()
    await this.#parts.builder[Symbol.asyncDispose]()
    await this.#parts.own[Symbol.asyncDispose]()
  }

  #openCopies({ fleet, heartbeat, tracer }: ReleasesHere): CopyEngines & AsyncDisposable {
    const { service, config, builder, own, log } = this.#parts
    return new CopyProcesses({
      ...{ fleet, clock: service.clock, log, folder: own.path, room: config.fleet.copies.room },
      findRelease: createFindStartable(builder),
      bring: this.#bringing.bring,
      // What an engine can run is learnt when it has been started.
      recall: async () => null,
      toEngineId: (name) => toEngineId(name, { heartbeat }),
      env: readChildEnvironment(),
      bounds: toCopyBounds(config.fleet),
      owner: { ownerId: `${service.hello.service_id}-${service.hello.key_id}`, instanceId: heartbeat.nodeId },
      ...(tracer !== undefined && { tracer }),
    })
  }

  async #look({ heartbeat, workers }: ReleasesHere, engines: CopyEngines): Promise<void> {
    const { service, config, directory, log } = this.#parts
    // Says how things are, and hears what is to be.
    await heartbeat.hear()
    this.#freeBytes = await freeBytes(directory)
    const wanted = service.engines.assigned() ?? this.#wanted
    const isNamed = new Set(wanted.map(({ pool }) => pool))
    const gone = this.#wanted.filter(({ pool }) => !isNamed.has(pool))
    this.#wanted = wanted
    await this.#places.look(wanted)
    for (const { pool } of wanted) await workers.start(pool, config.fleet.copies.room)
    await engines.keep(wanted.map((copy) => ({ ...copy, accountId: '' })))
    const deadline = new Date(service.clock.now().getTime() + config.jobs.drainTimeoutMs)
    // What runs there may finish; the next look must not wait for it.
    for (const { pool } of gone)
      void workers.stop(pool, { deadline }).catch((err: unknown) => log.error({ err, pool }, 'workers did not end'))
  }

  /** Those that wait, one after the other. */
  async #buildNext(): Promise<void> {
    const { service, builder, log } = this.#parts
    while (!this.#ending.signal.aborted && !this.#isWithdrawn) {
      const leaseId = newUuidV4()
      const build = await this.#builds.claim(leaseId, builder.targets)
      if (build === null) return
      const { claimed, quotaOf, openBlob } = build
      const parts = { queue: this.#builds.queue, builder, quotaOf, openBlob, clock: service.clock, log }
      const end = await buildOne({ ...parts, leaseMs: BUILD_LEASE_MS }, claimed, {
        leaseId,
        ending: this.#ending.signal,
      })
      if (end === 'passed_on') await sleep(REST_MS, this.#ending.signal)
    }
  }

  async #tidy(): Promise<void> {
    const { service, builder } = this.#parts
    const isKept = async (releaseId: string) =>
      this.#wanted.some((copy) => copy.releaseId === releaseId) || (await this.#remote.isUsed(releaseId))
    const before = (ms: number) => new Date(service.clock.now().getTime() - ms)
    await builder.keepOnly(isKept, { finished: before(KEEP_YOUNG_MS), fetched: before(KEEP_FETCHED_MS) })
  }

  async #repeat(everyMs: number, act: () => Promise<unknown>): Promise<void> {
    const { log } = this.#parts
    while (!this.#ending.signal.aborted) {
      await act().catch((error: unknown) => {
        if (isStoreAway(error)) log.debug({ err: error }, 'releases have to wait for the service, which is away')
        else log.error({ err: error }, 'a step of serving releases failed; it is tried again')
      })
      await sleep(everyMs, this.#ending.signal)
    }
  }
}

type Told = Pick<ReportedCopy, 'place' | 'reason' | 'staging'>

const NOTHING_YET: Told = { place: 'coming', reason: null, staging: null }

/** Where the releases of copies are. One that could not be made is not tried again at once. */
function createPlaces(
  bring: (accountId: string, releaseId: string, gpuClass: string) => Promise<ReleasePlace>,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
) {
  const known = new Map<string, Told & { readonly atMs: number }>()

  /** What is wrong with one release keeps no other from being served. */
  async function tryToBring(releaseId: string, gpuClass: string): Promise<ReleasePlace> {
    try {
      return await bring('', releaseId, gpuClass)
    } catch (error) {
      if (isStoreAway(error)) return { place: 'coming' }
      log.error({ err: error, releaseId }, 'the folder of a release could not be looked at')
      return { place: 'gone', reason: 'the folder of this release cannot be read; the log of the machine says why' }
    }
  }

  return {
    of: (pool: string): Told => {
      const { place, reason, staging } = known.get(pool) ?? NOTHING_YET
      return { place, reason, staging }
    },
    async look(wanted: readonly AssignedCopy[]): Promise<void> {
      const isWanted = new Set(wanted.map(({ pool }) => pool))
      for (const pool of known.keys()) if (!isWanted.has(pool)) known.delete(pool)
      for (const { pool, releaseId, gpuClass } of wanted) {
        const before = known.get(pool)
        const atMs = clock.now().getTime()
        if (before?.place === 'gone' && atMs - before.atMs < TRY_AGAIN_MS) continue
        known.set(pool, { ...toTold(await tryToBring(releaseId, gpuClass)), atMs })
      }
    },
  }
}

function toTold(found: ReleasePlace): Told {
  return {
    place: found.place,
    reason: found.place === 'gone' ? found.reason : null,
    staging: found.place === 'coming' ? (found.staging ?? null) : null,
  }
}

async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}

/** For what engines of this process write. */
interface OwnFolder extends AsyncDisposable {
  readonly path: string
}

const OWN = /^(join-[0-9a-f-]{36})(?:\.lock)?$/

/** Removes what engines wrote whose worker was killed: numbers of processes say nothing, because they repeat in containers. */
async function openOwnFolder(folder: string, instanceId: string): Promise<OwnFolder> {
  await mkdir(folder, { recursive: true })
  // Nobody takes the lock of a folder while another process looks at it.
  using _sweeping = await takeLock(join(folder, 'sweep.lock'), new AbortController().signal)
  const names = (await readdir(folder)).flatMap((name) => OWN.exec(name)?.[1] ?? [])
  for (const name of new Set(names)) {
    using left = tryLock(join(folder, `${name}.lock`))
    if (left !== null) await removeOwn(folder, name)
  }
  const name = `join-${instanceId}`
  const lock = await takeLock(join(folder, `${name}.lock`), new AbortController().signal)
  return {
    path: join(folder, name),
    async [Symbol.asyncDispose]() {
      await removeOwn(folder, name)
      lock.release()
    },
  }
}

async function removeOwn(folder: string, name: string): Promise<void> {
  // A program that was ended may still write for a moment.
  await rm(join(folder, name), { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  await rm(join(folder, `${name}.lock`), { force: true })
}

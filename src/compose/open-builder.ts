/** The builder of this process, and the loop that makes what is queued with it. */
import { existsSync, readFileSync } from 'node:fs'
import type { Clock } from '../../lib/clock.ts'
import { newUuidV4 } from '../../lib/ids.ts'
import type { Log } from '../../lib/log.ts'
import { type Network, publicInternet } from '../../lib/outbound/network.ts'
import type { SystemUser } from '../../lib/processes/kept-process.ts'
import { openBuilder } from '../adapters/builders/open-builder.ts'
import { openRegistry } from '../adapters/builders/sources/registry.ts'
import type { BuilderConfig } from '../config/blocks/builder-config.ts'
import { readBuilderEnvironment } from '../config/child-environment.ts'
import type { Config } from '../config/config.ts'
import { ConfigError } from '../config/config-error.ts'
import type { Secrets } from '../config/secrets.ts'
import type { BlobStore } from '../domain/assets/blob-store.ts'
import type { BlobKind } from '../domain/environments/blob.ts'
import { type BringRelease, createBringRelease, type FindReleaseParts } from '../domain/environments/bring-release.ts'
import { createBuildLoop } from '../domain/environments/build-loop.ts'
import { type Builder, BuildFailure } from '../domain/environments/builder.ts'
import { type BuildTarget, readTarget, targetText } from '../domain/environments/definition.ts'
import { cudaOfDriver } from '../domain/environments/fit.ts'
import type { PackRegistry } from '../domain/environments/pack-registry.ts'
import type { Store } from '../domain/store.ts'

interface BuilderParts {
  readonly secrets: Pick<Secrets, 'builderHeaders'>
  readonly store: Pick<Store, 'artifacts' | 'builds' | 'buildBlobs' | 'released' | 'isExclusive'>
  readonly blobs: Pick<BlobStore, 'open' | 'stat'>
  readonly builderId: string
  /** Takes the place of the one that the configuration names; null: none does. */
  readonly given: (Builder & AsyncDisposable) | null
  /** null: the real one. */
  readonly network: Network | null
  readonly version: string
  readonly clock: Clock
  readonly log: Log
}

export interface OpenedBuilder extends AsyncDisposable {
  /** null: this process builds nothing, and has no folders of releases. */
  readonly builder: Builder | null
  /** null without a builder. */
  readonly bring: BringRelease['bring'] | null
  /** Of the builder, for those who write definitions. */
  readonly registry: PackRegistry | null
  /** The newest CUDA that the driver here runs, by its first number; null: not known. */
  readonly cuda: number | null
  /** Begins to make what is queued. */
  start(): void
}

type ConfiguredParts = Pick<BuilderParts, 'secrets' | 'network' | 'version' | 'log'>

/** Throws ConfigError. */
export async function openConfiguredBuilder(
  { builder: given, fleet }: { readonly builder: BuilderConfig; readonly fleet: Pick<Config['fleet'], 'weights'> },
  parts: ConfiguredParts,
): Promise<Builder & AsyncDisposable> {
  const isRoot = process.getuid?.() === 0
  if (given.user === null && isRoot)
    parts.log.warn({}, 'builds run as the administrator of this machine; name another user in "user" of builder')
  return openBuilder({
    ...given,
    packages: given,
    targets: given.targets?.map(readTarget) ?? targetsOfMachine(),
    cuda: readCuda(),
    headers: new Map(Object.entries(JSON.parse(parts.secrets.builderHeaders?.reveal() ?? '{}'))),
    network: parts.network ?? publicInternet,
    rules: fleet.weights,
    user: findUser(given),
    env: readBuilderEnvironment(),
    version: parts.version,
  })
}

export async function openBuilderOf(
  config: Pick<Config, 'builder' | 'fleet'>,
  parts: BuilderParts,
): Promise<OpenedBuilder> {
  const { store, clock, log } = parts
  const { builder: configured, fleet } = config
  const builder =
    parts.given ?? (configured === null ? null : await openConfiguredBuilder({ builder: configured, fleet }, parts))
  if (builder === null)
    return { builder: null, bring: null, registry: null, cuda: null, start() {}, async [Symbol.asyncDispose]() {} }
  const { registry: source = null, origins = [] } = config.builder ?? {}
  const registry = source === null ? null : openRegistry(source, { network: parts.network ?? publicInternet, origins })
  const open = (accountId: string, blobId: string, kind: BlobKind) => openBlob(parts, accountId, { blobId, kind })
  const find: FindReleaseParts = async (accountId, releaseId, target) => {
    const release = await store.builds.findRelease(accountId, releaseId)
    const made = release?.artifacts.find(
      (each) => each.status === 'ready' && targetText(each.target) === targetText(target),
    )
    if (release === null || made?.lock == null) return null
    const { definition } = release
    return { definition, lock: made.lock, openBlob: (blobId, kind) => open(accountId, blobId, kind) }
  }
  const bringing = createBringRelease({ find, builder, log })
  const loop = createBuildLoop({
    ...{ queue: store.artifacts, builder, builderId: parts.builderId, newId: newUuidV4, clock, log },
    openBlob: open,
    usedReleases: () => store.released.usedReleases(),
    maxAccountBytes: config.builder?.maxAccountBytes ?? Number.MAX_SAFE_INTEGER,
    isAlone: store.isExclusive,
  })
  return {
    ...{ builder, registry, cuda: readCuda() },
    bring: bringing.bring,
    start: () => loop.start(),
    async [Symbol.asyncDispose]() {
      await bringing[Symbol.asyncDispose]()
      await loop[Symbol.asyncDispose]()
      await builder[Symbol.asyncDispose]()
      await registry?.[Symbol.asyncDispose]()
    },
  }
}

async function openBlob(
  { store, blobs }: BuilderParts,
  accountId: string,
  { blobId, kind }: { readonly blobId: string; readonly kind: BlobKind },
): Promise<NodeJS.ReadableStream> {
  const found = await store.buildBlobs.find(accountId, blobId)
  const hash = found?.kind === kind ? found.hash : null
  if (hash === null || (await blobs.stat(hash)) === null)
    throw new BuildFailure('freeze', `the uploaded file ${blobId} is gone; upload it again and push the build`)
  return blobs.open(hash)
}

const DRIVER = '/proc/driver/nvidia/version'

/** The newest CUDA that the driver of this machine runs, by its first number; null: there is none that says so. */
export function readCuda(): number | null {
  const text = existsSync(DRIVER) ? readFileSync(DRIVER, 'utf8') : ''
  const [version] = /\b\d{3,4}\.\d+(?:\.\d+)?\b/.exec(text) ?? []
  return version === undefined ? null : cudaOfDriver(version)
}

/** What environments for this machine are called, that of its graphics card first. */
function targetsOfMachine(): readonly BuildTarget[] {
  if (process.platform === 'darwin') return [{ os: 'darwin', gpu: 'apple' }]
  if (process.platform === 'win32') return [{ os: 'windows', gpu: 'cpu' }]
  const cpu: BuildTarget = { os: 'linux', gpu: 'cpu' }
  if (existsSync('/proc/driver/nvidia/version') || existsSync('/dev/nvidiactl'))
    return [{ os: 'linux', gpu: 'nvidia' }, cpu]
  return existsSync('/dev/kfd') ? [{ os: 'linux', gpu: 'amd' }, cpu] : [cpu]
}

/** Throws ConfigError. */
function findUser({ user }: Pick<BuilderConfig, 'user'>): SystemUser | null {
  if (user === null) return null
  if (process.getuid?.() !== 0)
    throw new ConfigError(
      '"user" of builder can only be another user when the service is started by root; leave it out',
    )
  const lines = existsSync('/etc/passwd') ? readFileSync('/etc/passwd', 'utf8').split('\n') : []
  const [, , uid, gid] = lines.map((line) => line.split(':')).find(([name]) => name === user) ?? []
  if (uid === undefined || gid === undefined)
    throw new ConfigError(`"user" of builder names ${JSON.stringify(user)}, who is no user of this machine`)
  return { uid: Number(uid), gid: Number(gid) }
}

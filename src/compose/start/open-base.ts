/** What everything else stands on: time, the store, this process among those of its service, and the stored bytes. */
import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import type { Tracer } from '../../../lib/tracing/tracer.ts'
import type { Config } from '../../config/config.ts'
import type { Secrets } from '../../config/secrets.ts'
import { type Authenticate, createLocalAuthenticate } from '../../domain/accounts/caller.ts'
import type { PerAccount } from '../../domain/accounts/limits/tiers.ts'
import { type Deployments, openDeployments } from '../../domain/deployments/deployments.ts'
import type { Store } from '../../domain/store.ts'
import { openSharedAccounts, type SharedAccounts } from '../open-accounts.ts'
import type { Directories } from '../open-directories.ts'
import { mayJoin, type OpenedWorkerKeys, openWorkerKeys } from '../open-worker-gateway.ts'
import { createMinorGc } from '../process/runtime.ts'
import { openServiceFile, type ServiceFile } from '../process/service-file.ts'
import {
  openClock,
  openServiceNode,
  type ServiceClock,
  type ServiceNodeParts,
  toServiceClock,
} from '../process/service-node.ts'
import { type BlobOverrides, type OpenedBlobs, openBlobs } from '../storage/open-blobs.ts'
import { openStore, type StoreOverrides } from '../storage/open-store.ts'

export interface BaseOverrides extends BlobOverrides, StoreOverrides {
  readonly clock?: Clock
  /** For tests: a store that can be away. */
  readonly wrapStore?: (store: Store) => Store
  /** For tests: called in place of the garbage collector. */
  readonly collectMinor?: () => void
}

interface BaseOptions {
  readonly tracer?: Tracer
  readonly log: Log
  readonly version: string
  /** Left out: opened here. */
  readonly openingStore?: Promise<Store>
  readonly overrides: BaseOverrides
  readonly opening: AsyncDisposableStack
}

/** What this process says of itself in its beats, as soon as it is known. */
interface NodeFigures {
  /** How many workers it has, by pool. */
  workers: () => Readonly<Record<string, number>>
  /** Where other processes hear live what runs here; null: nowhere, or not yet. */
  address: string | null
}

export interface Base {
  readonly clock: Clock
  readonly isClockSane: ServiceClock['isSane']
  readonly store: Store
  /** Commands on this machine find the one service of a data folder by it; null: there may be several. */
  readonly serviceFile: ServiceFile | null
  /** Whether workers of other machines may join. */
  readonly takesWorkers: boolean
  readonly node: ServiceNodeParts
  readonly figures: NodeFigures
  readonly opened: OpenedBlobs
  /** Called for every chunk of a body that is received or sent. */
  readonly onTransferred: (bytes: number) => void
  /** Left out: tracing is off. */
  readonly tracer?: Tracer
  readonly log: Log
}

export async function openBase(config: Config, secrets: Secrets, options: BaseOptions): Promise<Base> {
  const { tracer, log, version, overrides, opening } = options
  const { role } = config
  const serviceClock =
    overrides.clock === undefined
      ? openClock({ isFollowed: config.store.kind === 'postgres', log })
      : toServiceClock(overrides.clock)
  const { clock } = serviceClock
  const keptStore = opening.use(
    await (options.openingStore ??
      openStore(config.store, { retentionMs: config.jobs.retentionMs, secrets, overrides, clock, log })),
  )
  const store = overrides.wrapStore?.(keptStore) ?? keptStore
  await serviceClock.begin(store)
  const serviceFile = store.isExclusive ? opening.use(await openServiceFile(config.dataDirectory)) : null
  const onTransferred = createMinorGc(overrides.collectMinor)
  const takesWorkers = await mayJoin(config.fleet, store)
  const figures: NodeFigures = { workers: () => ({}), address: null }
  const node = opening.use(
    await openServiceNode({
      ...{ takesWorkers, store, version, role, clock, log },
      workers: () => figures.workers(),
      address: () => figures.address,
      sampleTime: serviceClock.sample,
    }),
  )
  const opened = opening.use(
    await openBlobs(config.blobs, config.assets, {
      store,
      dataDirectory: config.store.kind === 'sqlite' ? config.store.directory : null,
      secrets,
      users: store.isExclusive ? null : await findUsers(node),
      overrides,
      onTransferred,
      clock,
      log,
    }),
  )
  const { isSane: isClockSane } = serviceClock
  return { clock, isClockSane, store, serviceFile, takesWorkers, node, figures, opened, onTransferred, tracer, log }
}

/** The processes of the service, as users of its folder of blobs. */
async function findUsers({ heartbeat }: ServiceNodeParts) {
  return { own: heartbeat.nodeId, live: new Set((await heartbeat.findLive()).map(({ id }) => id)) }
}

/** Who may call, and what each of them may do: accounts, keys, limits and deployments, followed wherever another process changes them. */
interface CallerParts extends Pick<Base, 'store' | 'clock' | 'log'> {
  readonly secrets: Pick<Secrets, 'token'>
  readonly directories: Directories
  /** For tests: in place of every other way to find the account of a credential. */
  readonly authenticate: Authenticate | undefined
  /** Accounts may deploy releases, in the local kind as well. */
  readonly hasReleases: boolean
  readonly opening: AsyncDisposableStack
}

export interface Callers {
  /** null: the local kind. */
  readonly shared: SharedAccounts | null
  readonly workerKeys: OpenedWorkerKeys
  readonly authenticate: Authenticate
  /** The same without counting the request. */
  readonly identify: Authenticate
  readonly maxUploadBytes: PerAccount
  /** null: no limit. */
  readonly storageLimitOf: (accountId: string) => number | null
  /** null: there are none: the local kind without releases. */
  readonly deployments: Deployments | null
}

export async function openCallers(config: Config, parts: CallerParts): Promise<Callers> {
  const { store, secrets, directories, clock, log } = parts
  const shared =
    config.accounts === null ? null : await openSharedAccounts(config.accounts, { store, directories, clock, log })
  if (shared !== null) parts.opening.defer(() => flushKeyUses(shared, log))
  const workerKeys = await openWorkerKeys({ store, shared, directories, clock })
  const authenticate =
    parts.authenticate ?? shared?.authenticate ?? createLocalAuthenticate(secrets.token?.reveal() ?? null)
  const announce = () => directories.announce('deployments')
  const deployments =
    config.deployments === null && !parts.hasReleases
      ? null
      : await openDeployments({ store: store.deployments, clock, announce })
  directories.follow({
    ...shared?.lists,
    ...(workerKeys.ring !== null && { keys: workerKeys.ring }),
    ...(deployments !== null && { deployments }),
  })
  return {
    shared,
    workerKeys,
    authenticate,
    identify: parts.authenticate ?? shared?.identify ?? authenticate,
    maxUploadBytes: toUploadLimit(config, shared),
    storageLimitOf: (accountId) => shared?.limitsOf(accountId).storageBytes ?? null,
    deployments,
  }
}

function toUploadLimit({ assets }: Config, shared: SharedAccounts | null): PerAccount {
  if (shared === null) return assets.maxUploadBytes
  return (accountId) => Math.min(assets.maxUploadBytes, shared.limitsOf(accountId).uploadBytes ?? assets.maxUploadBytes)
}

/** When a key was last used is only information, so a store that is away at the end does not make the end a failure. */
async function flushKeyUses(shared: Pick<SharedAccounts, 'flush'>, log: Log): Promise<void> {
  try {
    await shared.flush()
  } catch (error) {
    log.warn({ err: error }, 'when keys were last used could not be stored')
  }
}

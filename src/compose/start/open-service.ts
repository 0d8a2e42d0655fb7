/**
 * Opens everything of the service but its listener, in the order of the dependencies. Whatever must be closed again is put on the
 * stack of the caller, who closes it in the reverse order.
 */
import { newUuidV4 } from '../../../lib/ids.ts'
import type { Log } from '../../../lib/log.ts'
import type { Network } from '../../../lib/outbound/network.ts'
import { createSealer, type Sealer } from '../../../lib/sealer.ts'
import type { Tracer } from '../../../lib/tracing/tracer.ts'
import { createTurns, type Turns } from '../../../lib/waiting/turns.ts'
import type { Config } from '../../config/config.ts'
import type { Secrets } from '../../config/secrets.ts'
import type { Authenticate } from '../../domain/accounts/caller.ts'
import type { SignIn } from '../../domain/accounts/sign-in.ts'
import { type ContentSigner, createContentSigner } from '../../domain/assets/signed-url.ts'
import type { Engine, EngineRun } from '../../domain/engine/engine-port.ts'
import type { NodeModels, RunModel } from '../../domain/engine/model-port.ts'
import { openWarmPlans, type WarmPlans } from '../../domain/engine/warm/warm-plans.ts'
import { createWeightManager, type WeightManager } from '../../domain/engine/weights/manage-weights.ts'
import type { Builder } from '../../domain/environments/builder.ts'
import type { Store } from '../../domain/store.ts'
import type { WorkerGateway } from '../../domain/workers/worker-gateway.ts'
import { type AssetActions, createAssetActions } from '../asset-actions.ts'
import { type OpenedBus, openBus } from '../bus/open-bus.ts'
import { openJoinedMachines, openMachinePlans } from '../engines/joined-machines.ts'
import type { OpenedDirectory } from '../engines/open-directory.ts'
import { type FleetOverrides, openEngines } from '../engines/open-engines.ts'
import { NO_RELEASES, type OpenedReleased } from '../engines/open-released.ts'
import { type OpenedBulk, openBulk } from '../jobs/open-bulk.ts'
import type { Metrics } from '../metrics/open-metrics.ts'
import { openSignIn } from '../open-accounts.ts'
import { type OpenedBuilder, openBuilderOf } from '../open-builder.ts'
import { type OpenedBuilds, openBuilds, openReleasesHere } from '../open-builds.ts'
import { createDirectories } from '../open-directories.ts'
import { type OpenedEndpoints, openEndpoints } from '../open-endpoints.ts'
import { openInputUrls } from '../open-input-urls.ts'
import { type OpenedModeration, openModeration } from '../open-moderation.ts'
import { type OpenedSchedules, openSchedules } from '../open-schedules.ts'
import { type OpenedWebhooks, openWebhooks } from '../open-webhooks.ts'
import { openWorkerGateway } from '../open-worker-gateway.ts'
import { PARTS_OF } from '../roles.ts'
import type { ModelOverrides } from '../router/open-models.ts'
import { openRouter, type Router } from '../router/open-router.ts'
import { type OpenedPartnerNodes, openPartnerNodes } from '../router/partner-nodes.ts'
import { openSigningKeys } from '../storage/open-signing-keys.ts'
import { type Base, type BaseOverrides, type Callers, openBase, openCallers } from './open-base.ts'
import { type OpenedJobs, openJobs } from './open-jobs.ts'
import { openReleasedHere } from './open-released-here.ts'

export interface ServiceOverrides extends FleetOverrides, BaseOverrides {
  /** For tests that observe how long work on the main thread is cut into slices. */
  readonly turns?: Turns
  /** For tests: other providers, and a store that can fail at a chosen step. */
  readonly models?: ModelOverrides
  /** For tests: finds the account that a credential belongs to. */
  readonly authenticate?: Authenticate
  /** For tests: makes what is queued in place of the one that the configuration names. */
  readonly builder?: Builder & AsyncDisposable
}

interface ServiceOptions {
  /** Left out: tracing is off. */
  readonly tracer?: Tracer
  readonly log: Log
  readonly version: string
  readonly metrics: Metrics
  readonly openingStore?: Promise<Store>
  readonly overrides: ServiceOverrides
  readonly opening: AsyncDisposableStack
}

interface OpenedService {
  readonly base: Base
  readonly callers: Callers
  readonly engines: OpenedDirectory
  readonly warm: WarmPlans
  /** The engine in this process, if there is one. */
  readonly resident: Engine | null
  readonly bus: OpenedBus
  readonly assets: AssetActions
  readonly running: OpenedJobs
  readonly released: OpenedReleased
  readonly router: Router
  readonly endpoints: OpenedEndpoints
  readonly schedules: OpenedSchedules
  readonly bulk: OpenedBulk
  readonly builds: OpenedBuilds
  readonly partner: OpenedPartnerNodes
  readonly signer: ContentSigner
  readonly signIn: SignIn
  readonly webhooks: OpenedWebhooks
  readonly moderation: OpenedModeration
  /** null: no environments are made here. */
  readonly builder: Builder | null
  readonly weights: WeightManager
  /** null: no worker of another machine may join, or this process takes no requests. */
  readonly gateway: WorkerGateway | null
  /** Shared by all long work on the main thread. */
  readonly turns: Turns
  /** To be told where this process listens; resolves when engines that waited for it have begun. */
  listensAt(url: string): Promise<void>
}

export async function openService(config: Config, secrets: Secrets, options: ServiceOptions): Promise<OpenedService> {
  const { log, metrics, overrides, opening } = options
  const base = await openBase(config, secrets, options)
  const { store, node, clock } = base
  // The engine runs models for nodes, and models run workflows on the engine, so one of the two is connected later.
  const nodeModels = Promise.withResolvers<NodeModels>()
  const runModel: RunModel = async (request, signals) => (await nodeModels.promise).run(request, signals)
  const bus = opening.use(
    await openBus(config.bus, { storeConfig: config.store, secrets, store, heartbeat: node.heartbeat, clock, log }),
  )
  base.figures.address = bus.address
  const directories = opening.use(createDirectories({ store, bus, log }))
  const { authenticate, turns = createTurns() } = overrides
  const network = overrides.models?.network ?? null
  const building = await openBuilding(config, secrets, { ...options, base, network })
  const machines = base.takesWorkers ? openJoinedMachines({ nodes: store.nodes, clock }) : null
  const releases = overrides.releases ?? openReleasesHere(config.builds, { store, building, machines })
  const hasReleases = releases !== NO_RELEASES
  const callers = await openCallers(config, { ...base, secrets, directories, authenticate, hasReleases, opening })
  const workerKeys = callers.workerKeys.keys
  machines?.knowKeys(workerKeys)
  const glance = directories.latest
  const runTokens = Promise.withResolvers<OpenedPartnerNodes['runs']>()
  const listening = Promise.withResolvers<string>()
  const apiBase = toApiBase(config, secrets, listening.promise)
  const equip = async (run: EngineRun) => (await runTokens.promise).equip(run)
  const partnerAccess = apiBase === null ? {} : { partner: { apiBase, equip } }
  const warm = await openWarmPlans(store)
  const fleetParts = { ...base, bus, workerKeys, glance, overrides, runModel, hasCopies: hasReleases, ...partnerAccess }
  const { opened: openedEngines, resident, untilLateHeard } = await openEngines(config, { ...fleetParts, warm })
  const engines = opening.use(openedEngines)
  const sealer = openSealer(secrets)
  const addresses = { listening: listening.promise, internalUrl: bus.address }
  const urlParts = { ...addresses, secrets, network, version: options.version }
  const { fetchInput } = opening.use(openInputUrls(config, urlParts))
  const assets = opening.use(createAssetActions(config.assets, { ...base, ...callers, ...engines, sealer, fetchInput }))
  const signingKeys = await openKeysOf(config, secrets, { store, sealer })
  const common = { secrets, signingKeys, version: options.version, clock, log }
  const webhooks = opening.use(
    await openWebhooks(config, { ...common, store, bus, glance, network, observer: metrics.deliveryObserver }),
  )
  const ownUrl = () => toOwnUrl(config, listening.promise)
  const moderation = opening.use(
    openModeration(config, { ...common, opened: base.opened, turns, ownUrl, observer: metrics.hookObserver }),
  )
  const running = await openJobs(config, {
    ...{ base, callers, engines, bus, assets, sealer, turns, webhooks, moderation, opening },
    observer: metrics.observer,
    mustRunModels: async (wish) => (await nodeModels.promise).mustRun(wish),
  })
  const releasedParts = { base, callers, engines, running, bus, releases, machines, overrides }
  const released = opening.use(await openReleasedHere(config, { ...releasedParts, ...partnerAccess }))
  const signer = createContentSigner(signingKeys, clock)
  const signIn = openSignIn({ ...callers, store, secrets, signingKeys, clock })
  const endpointParts = { ...base, ...callers, ...running, assets, moderation, turns }
  const endpoints = openEndpoints({ ...endpointParts, directory: engines.directory, engine: resident })
  const routerParts = { base, callers, bus, glance, assets, signer, endpoints, webhooks, secrets, sealer }
  const router = opening.use(await openServiceRouter(config, options, routerParts))
  nodeModels.resolve(router.nodeModels)
  const partner = openPartnerNodes({
    ...{ ...callers, router, store, assets, signer, signingKeys, clock },
    hasCredentials: callers.shared !== null || secrets.token !== null,
    brands: config.http.brand,
    nodeId: node.heartbeat.nodeId,
  })
  runTokens.resolve(partner.runs)
  const service = {
    ...{ base, callers, engines, warm, resident, bus, assets, running, router },
    ...{ released, partner, signer, signIn, turns, webhooks, moderation, endpoints, builder: building.builder },
    ...openUnattended(opening, { ...base, ...callers, jobs: running.jobs, runs: endpoints.runs }),
    builds: openBuilds(config, { ...base, signingKeys, building, directory: engines.directory }),
    async listensAt(url: string) {
      listening.resolve(url)
      await untilLateHeard()
    },
    weights: openWeights(config, { base, engines }),
  }
  const hasGateway = base.takesWorkers && PARTS_OF[config.role].surfaces
  return { ...service, gateway: hasGateway ? openGateway(config, service, { runModel, signingKeys }) : null }
}

/** What goes on without a request. */
function openUnattended(
  opening: AsyncDisposableStack,
  parts: Parameters<typeof openSchedules>[0] & Parameters<typeof openBulk>[0],
): Pick<OpenedService, 'schedules' | 'bulk'> {
  return { schedules: opening.use(openSchedules(parts)), bulk: opening.use(openBulk(parts)) }
}

function openKeysOf(
  config: Config,
  secrets: Secrets,
  parts: { readonly store: Store; readonly sealer: Sealer | null },
) {
  const { store, sealer } = parts
  const inFolder = { in: 'folder', directory: config.dataDirectory } as const
  const kept = store.isExclusive || sealer === null ? inFolder : ({ in: 'store', store, sealer } as const)
  return openSigningKeys({ configured: secrets.signingKeys, kept })
}

function openWeights(config: Config, { base, engines }: Pick<OpenedService, 'base' | 'engines'>): WeightManager {
  return createWeightManager({
    places: () => engines.fleet.weightPlaces(),
    directory: engines.directory,
    findNodes: () => base.node.heartbeat.findLive(),
    rules: config.fleet.weights,
    newId: newUuidV4,
    clock: base.clock,
  })
}

interface RouterParts
  extends Pick<OpenedService, 'base' | 'callers' | 'bus' | 'assets' | 'signer' | 'endpoints' | 'webhooks'> {
  readonly secrets: Secrets
  readonly sealer: Sealer | null
  readonly glance: ReturnType<typeof createDirectories>['latest']
}

function openServiceRouter(
  config: Config,
  { metrics, overrides }: ServiceOptions,
  parts: RouterParts,
): Promise<Router> {
  const { base, callers, secrets, sealer, bus, glance, assets, signer, endpoints, webhooks } = parts
  const { store, node, opened, clock, log, tracer } = base
  return openRouter(config.router, {
    ...{ ...callers, secrets, sealer, bus, store, glance, opened, assets, signer, endpoints, clock, log, tracer },
    directory: config.dataDirectory,
    nodeId: node.heartbeat.nodeId,
    counts: node.counts,
    leadership: node.leadership,
    toHook: webhooks.toHook,
    brands: config.http.brand,
    baseUrl: `${config.http.publicUrl ?? ''}${config.http.mountPrefix}`,
    observer: metrics.callObserver,
    observeExchange: metrics.observeExchange,
    overrides: overrides.models ?? {},
  })
}

/** Begins to make what is queued, if this process has a builder. */
async function openBuilding(
  config: Config,
  secrets: Secrets,
  {
    base,
    network,
    version,
    opening,
    overrides,
  }: ServiceOptions & { readonly base: Base; readonly network: Network | null },
): Promise<OpenedBuilder> {
  const { store, node, opened, clock, log } = base
  const given = overrides.builder ?? null
  const own = { builderId: node.heartbeat.nodeId, blobs: opened.blobs, network, version, given }
  const building = opening.use(await openBuilderOf(config, { ...own, secrets, store, clock, log }))
  building.start()
  return building
}

function openGateway(
  { builder }: Config,
  { base, callers, engines, running, assets, bus, turns, moderation }: Omit<OpenedService, 'gateway'>,
  parts: Pick<Parameters<typeof openWorkerGateway>[0], 'runModel' | 'signingKeys'>,
): WorkerGateway {
  const { store, node, opened, clock, log } = base
  const { directory, follow } = engines
  return openWorkerGateway({
    ...{ ...parts, store, assets, bus, directory, follow, turns, clock, log },
    jobs: running.jobs,
    keys: callers.workerKeys.keys,
    blobs: opened.blobs,
    plans: openMachinePlans(store),
    maxAccountBytes: builder?.maxAccountBytes ?? Number.MAX_SAFE_INTEGER,
    heartbeat: node.heartbeat,
    outputCheck: moderation.outputCheck,
  })
}

const ANY_ADDRESS: ReadonlySet<string> = new Set(['0.0.0.0', '::', '[::]'])

/**
 * Where engines that this process starts reach it; null: their partner nodes stay with their own service, because no provider has
 * a key here, or because it has no address for them. A port that the system picks is known when the process listens.
 */
function toApiBase(
  { http, role }: Config,
  secrets: Pick<Secrets, 'providers'>,
  listening: Promise<string>,
): string | Promise<string> | null {
  if (secrets.providers === null) return null
  if (!PARTS_OF[role].surfaces) return http.publicUrl === null ? null : http.publicUrl + http.mountPrefix
  const url = toOwnUrl({ http }, listening)
  return typeof url === 'string' ? url + http.mountPrefix : url.then((known) => known + http.mountPrefix)
}

/** Where others on this machine reach this process, without the mount prefix. */
function toOwnUrl({ http }: Pick<Config, 'http'>, listening: Promise<string>): string | Promise<string> {
  const host = ANY_ADDRESS.has(http.host) ? '127.0.0.1' : http.host
  const toUrl = (port: number | string) =>
    `http://${host.includes(':') && !host.startsWith('[') ? `[${host}]` : host}:${port}`
  return http.port === 0 ? listening.then((url) => toUrl(new URL(url).port)) : toUrl(http.port)
}

function openSealer({ secretKey, formerSecretKeys }: Secrets): Sealer | null {
  if (secretKey === null) return null
  return createSealer(
    secretKey.reveal(),
    formerSecretKeys.map((key) => key.reveal()),
  )
}

/**
 * The HTTP side of the composition root: opens the gate, builds each surface from the parts that it needs, and mounts all of
 * them on one listener.
 */

import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { Turns } from '../lib/waiting/turns.ts'
import { type AssetActions, openPictures } from './compose/asset-actions.ts'
import { readOpenFileLimit, toConnectionLimit } from './compose/connection-limit.ts'
import { createStandingOf } from './compose/console-parts.ts'
import type { RunningPools } from './compose/engines/open-deployments.ts'
import { readServiceId } from './compose/engines/service-id.ts'
import type { JobActions } from './compose/job-actions.ts'
import type { Metrics } from './compose/metrics/open-metrics.ts'
import type { SharedAccounts } from './compose/open-accounts.ts'
import type { OpenedWebhooks } from './compose/open-webhooks.ts'
import type { Readiness } from './compose/readiness.ts'
import type { Router } from './compose/router/open-router.ts'
import type { OpenedPartnerNodes } from './compose/router/partner-nodes.ts'
import type { OpenedBlobs } from './compose/storage/open-blobs.ts'
import type { Config } from './config/config.ts'
import type { Secrets } from './config/secrets.ts'
import type { Authenticate } from './domain/accounts/caller.ts'
import { createOwnKeys } from './domain/accounts/keys/own-keys.ts'
import type { PerAccount } from './domain/accounts/limits/tiers.ts'
import type { SignIn } from './domain/accounts/sign-in.ts'
import { createUserFiles } from './domain/accounts/user-files.ts'
import { type ContentSigner, refuseInactive } from './domain/assets/signed-url.ts'
import { createReportUsage } from './domain/credits/usage-report.ts'
import { DEFAULT_POOL } from './domain/deployments/deployment.ts'
import type { Deployments } from './domain/deployments/deployments.ts'
import type { PoolSignals } from './domain/deployments/pool-signals.ts'
import type { CommandEngine } from './domain/engine/directory/engine-commands.ts'
import type { EngineDirectory } from './domain/engine/directory/engine-directory.ts'
import type { WeightManager } from './domain/engine/weights/manage-weights.ts'
import type { EventBus } from './domain/events/event-bus.ts'
import type { LiveEvent } from './domain/events/live-event.ts'
import type { ServiceSeries } from './domain/jobs/read/service-series.ts'
import { asChosen, withinAccount } from './domain/jobs/submit/chosen-id.ts'
import { createForeseeWait } from './domain/jobs/waits/foresee-wait.ts'
import { createEstimateWait } from './domain/jobs/waits/wait-estimates.ts'
import type { OwnNode } from './domain/service-nodes/node-report.ts'
import type { Store } from './domain/store.ts'
import type { WorkerGateway } from './domain/workers/worker-gateway.ts'
import type { WorkerKeys } from './domain/workers/worker-keys.ts'
import { openAdmin, operatorOf } from './open-admin.ts'
import { openFrontend } from './open-frontend.ts'
import { createContentSurface } from './surfaces/content/index.ts'
import { createDocs } from './surfaces/docs/index.ts'
import { createJobsV2 } from './surfaces/jobs-v2/index.ts'
import { loadJobsContract } from './surfaces/jobs-v2/jobs-contract.ts'
import { createAnswerError } from './surfaces/jobs-v2/jobs-errors.ts'
import type { PoolOf } from './surfaces/jobs-v2/reachable-jobs.ts'
import { createDirectLinks, createSignedLinks } from './surfaces/jobs-v2/views/links.ts'
import { type BodyMemoryOptions, createBodyMemory } from './surfaces/kit/bodies/body-memory.ts'
import { createAccountConnections } from './surfaces/kit/connections/account-connections.ts'
import {
  createDeploymentHosts,
  createRouteDeployment,
  type DeploymentHosts,
} from './surfaces/kit/guards/deployment-address.ts'
import { createGate, type Gate, type GateOptions } from './surfaces/kit/guards/gate.ts'
import { createOperatorGuard } from './surfaces/kit/guards/operator-guard.ts'
import type { SurfaceParts } from './surfaces/kit/surface-parts.ts'
import { openTracing } from './surfaces/kit/tracing.ts'
import { createOperatorSurface } from './surfaces/operator/index.ts'
import { openOptionalSurfaces } from './surfaces/optional-surfaces.ts'
import { createRouterV2 } from './surfaces/router-v2/index.ts'
import { loadRouterContract } from './surfaces/router-v2/router-contract.ts'
import { type AnsweredRequest, openServer, type RunningServer } from './surfaces/server.ts'
import { createWorkerSurface } from './surfaces/worker-v1/index.ts'

// Longer than any call may take, so that an answer in the last moment still finds its connection open.
const HOLD_GRACE_MS = 60_000

/** For tests. */
export interface HttpOverrides {
  /** Finds the account that a credential belongs to. */
  readonly authenticate?: Authenticate
  /** Changes what optional surfaces are given. */
  readonly surfaceParts?: (parts: SurfaceParts) => SurfaceParts
}

function toStreamLimit({ http }: Config, shared: SharedAccounts | null): PerAccount {
  if (shared === null) return http.maxStreams
  return (accountId) => Math.min(http.maxStreams, shared.limitsOf(accountId).streams)
}

function toDeploymentHosts(config: Config['deployments']): DeploymentHosts | null {
  if (config === null || config.domain === null) return null
  return createDeploymentHosts({ domain: config.domain, stagingLabel: config.stagingLabel })
}

function toPoolOf(deployments: Deployments): PoolOf {
  return ({ deploymentId }, accountId) =>
    deploymentId === null ? null : deployments.findFor(accountId, deploymentId).id
}

export interface HttpParts {
  readonly store: Store
  readonly version: string
  readonly secrets: Secrets
  readonly authenticate: Authenticate
  /** null: the local kind. */
  readonly shared: SharedAccounts | null
  readonly deployments: Deployments | null
  readonly pools: RunningPools | null
  readonly bus: EventBus<LiveEvent>
  readonly directory: EngineDirectory
  readonly commandEngine: CommandEngine
  readonly weights: WeightManager
  readonly overrides: HttpOverrides
  readonly jobs: JobActions
  readonly assets: AssetActions
  readonly router: Router
  readonly partner: OpenedPartnerNodes
  readonly blobs: OpenedBlobs['blobs']
  readonly maxUploadBytes: PerAccount
  readonly workerKeys: WorkerKeys
  /** null: no worker of another machine may join. */
  readonly gateway: WorkerGateway | null
  readonly readiness: Readiness
  readonly own: OwnNode
  readonly poolSignals: PoolSignals
  readonly series: ServiceSeries
  readonly signer: ContentSigner
  readonly signIn: SignIn
  readonly webhooks: OpenedWebhooks
  readonly metrics: Metrics
  /** Shared by all long work on the main thread. */
  readonly turns: Turns
  /** Told of every chunk of a request's body. */
  readonly onTransferred: (bytes: number) => void
  readonly clock: Clock
  readonly log: Log
}

/** The budget is at least as large as the largest single body that is allowed, whatever is configured. */
function toBodyLimits({ http, router }: Config): Pick<BodyMemoryOptions, 'totalBytes' | 'perCallerBytes'> {
  const perCallerBytes = Math.max(http.maxBodiesPerCallerBytes, http.maxBodyBytes, router.maxBodyBytes)
  return { perCallerBytes, totalBytes: Math.max(http.maxBodiesBytes, perCallerBytes) }
}

export async function openHttp(config: Config, parts: HttpParts) {
  const { secrets, authenticate, shared, deployments, jobs, assets, router, signer, metrics, clock, log } = parts
  const { http } = config
  const gateOptions: GateOptions = {
    brands: http.brand,
    bindHost: http.host,
    hasCredentials: shared !== null || secrets.token !== null,
    authenticate,
    resume: createResume(parts, http.mountPrefix),
    ...(parts.overrides.authenticate === undefined && {
      isWelcome: shared?.isWelcome,
      onCredentialsChanged: shared?.onCredentialsChanged,
    }),
    allowedHosts: http.allowedHosts,
    corsOrigins: http.corsOrigins,
    publicUrl: http.publicUrl,
    mountPrefix: http.mountPrefix,
    trustedProxies: http.trustedProxies,
    deploymentHosts: toDeploymentHosts(config.deployments),
  }
  const gate = createGate(gateOptions)
  const accountConnections = createAccountConnections(toStreamLimit(config, shared))
  const contract = { brands: http.brand, needsCredentials: gate.hasCredentials }
  const spec = loadJobsContract(contract)
  const routerSpec = loadRouterContract(contract)
  const answerError = createAnswerError(log)
  const contentLinks =
    config.kind === 'local'
      ? createDirectLinks(clock)
      : createSignedLinks({ sign: signer.sign, lifetimeMs: config.assets.urlLifetimeMs, clock })
  const isEveryoneOperator = config.kind === 'local' && secrets.adminToken === null
  const guardAdmin = createOperatorGuard({
    gate,
    signIn: parts.signIn,
    isEveryoneOperator,
    adminToken: secrets.adminToken?.reveal() ?? null,
  })
  const jobsV2 = createJobsV2({
    gate,
    spec,
    answerError,
    clock,
    turns: parts.turns,
    maxBodyBytes: http.maxBodyBytes,
    accountConnections,
    cursorSecret: router.cursorSecret,
    contentLinks,
    linkStyle: { isAbsolute: http.absoluteUrls },
    upstream: config.kind === 'local' ? (config.fleet.urls[0] ?? 'embedded') : null,
    poolOf: deployments === null ? undefined : toPoolOf(deployments),
    jobs: { ...jobs, watchJob: jobs.watching.watchJob },
    assets: { ...assets, maxUploadBytes: parts.maxUploadBytes },
    webhooks: parts.webhooks.webhooks,
    weights: {
      listOf: parts.directory.weights,
      manager: parts.weights,
      guard: guardAdmin,
      note: (request, line) => parts.store.audit.note({ ...line, actor: operatorOf(request), at: clock.now() }),
    },
    forecast: {
      engines: (pool) => parts.directory.status(pool),
      availability: () => parts.directory.availability(),
      showsUnable: config.kind === 'local',
      foreseeWait: createForeseeWait({ store: parts.store.summaries, clock }),
    },
  })
  const routerV2 = createRouterV2({
    ...router.actions,
    gate,
    spec: routerSpec,
    brands: http.brand,
    blobs: parts.blobs,
    pricedAt: () => router.models.catalog().loadedAt,
    cursorSecret: router.cursorSecret,
    maxBodyBytes: config.router.maxBodyBytes,
    holdMs: config.router.deadlineMs + HOLD_GRACE_MS,
    creditsPerUsd: config.router.creditsPerUsd,
    clock,
    log,
  })
  const isActive = (accountId: string) => shared?.accounts.find(accountId)?.status === 'active'
  const createContent = (before: Gate) =>
    createContentSurface({
      gate: before,
      answerError,
      verify: shared === null ? signer.verify : refuseInactive(signer.verify, isActive),
      openContent: assets.openContent,
      clock,
    })
  const operator = createOperatorSurface({
    // Where there are many accounts, only the operator may see figures about all of them.
    guardMetrics: shared === null ? (request) => gate.authenticate(request, 'bearer') : guardAdmin,
    role: config.role,
    notReadyReason: parts.readiness.notReadyReason,
    degraded: parts.readiness.degraded,
    metrics: async () => ({ contentType: metrics.contentType, text: await metrics.render() }),
  })
  const admin =
    secrets.adminToken === null && !isEveryoneOperator
      ? []
      : [
          openAdmin(config, {
            ...{ ...parts, gate, guard: guardAdmin, isEveryoneOperator },
            ...{ openStreams: jobsV2.openStreams, heldBy: accountConnections.count },
          }),
        ]
  const worker =
    parts.gateway === null
      ? []
      : [
          createWorkerSurface({
            ...{ gate, clock, log, gateway: parts.gateway, version: parts.version },
            serviceId: await readServiceId(parts.store),
            maxModelBytes: config.router.maxBodyBytes,
            holdMs: config.router.deadlineMs + HOLD_GRACE_MS,
          }),
        ]
  const { turns, onTransferred } = parts
  const bodyMemory = createBodyMemory({ ...toBodyLimits(config), turns, onTransferred })
  const surfaceParts = toSurfaceParts(config, gate, { ...parts, accountConnections, isEveryoneOperator })
  const optional = await openOptionalSurfaces(surfaceParts)
  const serverOptions = {
    host: http.host,
    maxConnections: toConnectionLimit(readOpenFileLimit()),
    // Where no run is waited for first, this is all the time that requests under way have.
    ...(config.role === 'api' && { drainMs: config.jobs.drainTimeoutMs }),
    answerError,
    onAnswered: config.log.requests ? (request: AnsweredRequest) => log.info(request, 'answered') : null,
    trace: openTracing(),
    bodyMemory,
  }
  const server = await openServer({
    ...serverOptions,
    port: http.port,
    gate,
    surfaces: [
      jobsV2,
      routerV2,
      createContent(gate),
      ...admin,
      ...worker,
      operator,
      createDocs({
        gate,
        document: spec.document,
        home: () => optional.map(({ home }) => home?.() ?? null).find((path) => path !== null) ?? null,
        others: [routerV2, ...optional, ...admin, ...worker].flatMap(({ reference }) => reference ?? []),
      }),
      ...optional,
    ],
    routeDeployment: deployments === null ? null : createRouteDeployment(http.mountPrefix),
  })
  const frontend =
    config.frontend === null
      ? null
      : await openFrontend(config.frontend, { gateOptions, surfaceParts, createContent, server: serverOptions }).catch(
          closing(server),
        )
  const gauges = [
    { name: 'atelier_body_bytes', help: 'Bytes of request bodies in memory.', read: bodyMemory.heldBytes },
    ...[...optional, ...worker].flatMap(({ gauges: own }) => own ?? []),
  ]
  return { ...together(server, frontend), openStreams: jobsV2.openStreams, gauges }
}

/** For a start that fails after this listener was opened. */
function closing(server: RunningServer): (error: unknown) => Promise<never> {
  return async (error) => {
    await server.close()
    throw error
  }
}

/** Both listeners end as one. */
function together(server: RunningServer, frontend: RunningServer | null) {
  const close = async () => {
    await Promise.all([server.close(), frontend?.close()])
  }
  return { ...server, frontendUrl: frontend?.url ?? null, close, [Symbol.asyncDispose]: close }
}

/**
 * The caller of a session; it counts as one request of its account, as with any other credential. A page of small pictures is one
 * look of a person, though, and must not use up what the programs of that account may ask.
 */
function createResume({ signIn, shared }: HttpParts, mountPrefix: string): GateOptions['resume'] {
  const pictures = [`${mountPrefix}/console/v1/thumbnails/`, '/api/view?']
  return async (text, { url }) => {
    const session = await signIn.openAccount(text)
    if (session === null) return null
    return shared === null || pictures.some((start) => url?.startsWith(start))
      ? session.caller
      : shared.countRequest(session.caller)
  }
}

/** What the surfaces that may be left out receive. */
function toSurfaceParts(
  config: Config,
  gate: Gate,
  parts: HttpParts & Pick<SurfaceParts, 'accountConnections'> & { readonly isEveryoneOperator: boolean },
): SurfaceParts {
  const { accountConnections, shared, signer, store, bus, directory, jobs, assets, version, turns, clock, log } = parts
  const given: SurfaceParts = {
    gate,
    brands: config.http.brand,
    clock,
    turns,
    log,
    version,
    isOneAccountForAll: shared === null,
    isForEditor: false,
    editorScripts: [],
    bus,
    catalog: () => directory.catalog(DEFAULT_POOL),
    jobs: { ...jobs, chooseId: shared === null ? asChosen : withinAccount },
    isAtLimit: async (accountId) =>
      shared !== null &&
      ((await store.accounts.findUse(accountId))?.running ?? 0) >= shared.limitsOf(accountId).concurrentJobs,
    assets: assets.namedFiles,
    pictures: openPictures(),
    userFiles: createUserFiles({ store: store.userFiles, clock }),
    content: {
      sign: signer.sign,
      servesBytes: config.kind === 'local',
    },
    accountConnections,
    console: {
      kind: config.kind,
      signIn: parts.signIn,
      isEveryoneOperator: parts.isEveryoneOperator,
      hasAdmin: parts.isEveryoneOperator || parts.secrets.adminToken !== null,
      hasRouter: parts.router.models.catalog().size > 0,
      standingOf: createStandingOf(config, store, shared),
      summaries: store.summaries,
      reportUsage: createReportUsage(store.ledger, clock),
      keys:
        shared === null
          ? null
          : createOwnKeys({ apiKeys: shared.apiKeys, audited: (entry) => store.audited(entry), clock }),
      models: { access: parts.router.actions.access, calls: store.calls },
      estimateWait: createEstimateWait({ store: store.summaries, clock }),
      watchJob: jobs.watching.watchJob,
      openContent: assets.openContent,
      liveRuns: jobs.liveRuns,
      engines: (pool) => directory.status(pool),
      availability: () => directory.availability(),
      cursorSecret: parts.router.cursorSecret,
      contentOrigins: config.blobs.kind === 's3' ? [config.blobs.publicEndpoint] : [],
    },
    partner: {
      ...parts.partner,
      blobs: parts.blobs,
      maxBodyBytes: config.router.maxBodyBytes,
      holdMs: config.router.deadlineMs + HOLD_GRACE_MS,
    },
    limits: {
      maxBodyBytes: config.http.maxBodyBytes,
      maxUploadBytes: config.assets.maxUploadBytes,
    },
  }
  return parts.overrides.surfaceParts?.(given) ?? given
}

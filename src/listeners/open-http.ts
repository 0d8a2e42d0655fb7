/**
 * The HTTP side of the composition root: opens the gate, builds each surface from the parts that it needs, and mounts all of
 * them on one listener.
 */

import { readFileSync } from 'node:fs'
import { readServiceId } from '../compose/engines/service-id.ts'
import type { SharedAccounts } from '../compose/open-accounts.ts'
import type { OpenedEndpoints } from '../compose/open-endpoints.ts'
import { type OpenedShares, openShares } from '../compose/open-shares.ts'
import type { Config } from '../config/config.ts'
import type { PerAccount } from '../domain/accounts/limits/tiers.ts'
import { refuseInactive } from '../domain/assets/signed-url.ts'
import { createBudgets } from '../domain/credits/budgets/manage-budgets.ts'
import { createReadStatement } from '../domain/credits/statement.ts'
import type { Deployments } from '../domain/deployments/deployments.ts'
import { createForeseeWait } from '../domain/jobs/waits/foresee-wait.ts'
import { createOwnCounts } from '../domain/service-nodes/shared-counts.ts'
import { createContentSurface } from '../surfaces/content/index.ts'
import { createDocs } from '../surfaces/docs/index.ts'
import { createJobsV2, loadJobsContract } from '../surfaces/jobs-v2/index.ts'
import { createAnswerError } from '../surfaces/jobs-v2/jobs-errors.ts'
import { createDirectLinks, createSignedLinks } from '../surfaces/jobs-v2/views/job-view.ts'
import { type BodyMemoryOptions, createBodyMemory } from '../surfaces/kit/bodies/body-memory.ts'
import { createAccountConnections } from '../surfaces/kit/connections/account-connections.ts'
import type { Contract } from '../surfaces/kit/contracts/contract.ts'
import { createRouteDeployment, mustNameNoDeployment, type PoolOf } from '../surfaces/kit/guards/addresses.ts'
import { createGate, type Gate } from '../surfaces/kit/guards/gate.ts'
import { createOperatorGuard } from '../surfaces/kit/guards/operator-guard.ts'
import type { Surface } from '../surfaces/kit/surface.ts'
import { createTraceRequest } from '../surfaces/kit/tracing.ts'
import { createOperatorSurface } from '../surfaces/operator/index.ts'
import { openOptionalSurfaces } from '../surfaces/optional-surfaces.ts'
import { createRouterV2, loadRouterContract } from '../surfaces/router-v2/index.ts'
import { type AnsweredRequest, openServer, type RunningServer } from '../surfaces/server.ts'
import { createWorkerSurface } from '../surfaces/worker-v1/index.ts'
import { type HttpParts, toGateOptions } from './http-parts.ts'
import { openAdmin, operatorOf } from './open-admin.ts'
import { openFrontend } from './open-frontend.ts'
import { HOLD_GRACE_MS, toSurfaceParts } from './surface-parts.ts'

function toStreamLimit({ http }: Config, shared: SharedAccounts | null): PerAccount {
  if (shared === null) return http.maxStreams
  return (accountId) => Math.min(http.maxStreams, shared.limitsOf(accountId).streams)
}

function toPoolOf(deployments: Deployments | null): PoolOf {
  if (deployments === null) return mustNameNoDeployment
  return ({ deploymentId }, accountId) =>
    deploymentId === null ? null : deployments.findFor(accountId, deploymentId).id
}

/** The budget has room for the largest single body, also of a model call. */
function toBodyLimits({ http, router }: Config): Pick<BodyMemoryOptions, 'totalBytes' | 'perCallerBytes'> {
  const perCallerBytes = Math.max(http.maxBodiesPerCallerBytes, router.maxBodyBytes)
  return { perCallerBytes, totalBytes: Math.max(http.maxBodiesBytes, perCallerBytes) }
}

/** What all surfaces share: who is let in, as whom, and how much at a time. */
function openEntrance(config: Config, parts: HttpParts, gate: Gate) {
  const { secrets, shared } = parts
  // Where there are no accounts, the limit protects the process and not the service from one of them.
  const counts = shared === null ? createOwnCounts() : parts.counts
  const isEveryoneOperator = config.kind === 'local' && secrets.adminToken === null
  return {
    gate,
    accountConnections: createAccountConnections(toStreamLimit(config, shared), counts),
    poolOf: toPoolOf(parts.deployments),
    answerError: createAnswerError(parts.log),
    isEveryoneOperator,
    hasOperators: isEveryoneOperator || secrets.adminToken !== null,
    needsAdminToken: !isEveryoneOperator || gate.hasCredentials,
    guardOperator: createOperatorGuard({
      gate,
      signIn: parts.signIn,
      isEveryoneOperator,
      adminToken: secrets.adminToken?.reveal() ?? null,
    }),
  }
}

type Entrance = ReturnType<typeof openEntrance>

interface JobsApiParts extends HttpParts {
  readonly endpoints: OpenedEndpoints & OpenedShares
}

function openJobsApi(config: Config, parts: JobsApiParts, entrance: Entrance, spec: Contract): Surface {
  const { jobs, assets, signer, directory, store, clock } = parts
  const isLocal = config.kind === 'local'
  return createJobsV2({
    ...entrance,
    spec,
    clock,
    turns: parts.turns,
    maxBodyBytes: config.http.maxBodyBytes,
    cursorSecret: parts.router.cursorSecret,
    contentLinks: isLocal
      ? createDirectLinks(clock)
      : createSignedLinks({ sign: signer.sign, lifetimeMs: config.assets.urlLifetimeMs, clock }),
    linkStyle: { isAbsolute: config.http.absoluteUrls },
    upstream: isLocal ? (config.fleet.urls[0] ?? 'embedded') : null,
    jobs: { ...jobs, watchJob: jobs.watching.watchJob },
    schedules: parts.schedules,
    bulk: parts.bulk.actions,
    assets: { ...assets, maxUploadBytes: parts.maxUploadBytes },
    webhooks: parts.webhooks.webhooks,
    providerKeys: parts.router.providerKeys,
    readStatement: createReadStatement(store.ledger, clock),
    budgets: createBudgets({ store: store.budgets, audited: (entry) => store.audited(entry), clock }),
    endpoints: parts.endpoints,
    weights: {
      listOf: directory.weights,
      manager: parts.weights,
      guard: entrance.guardOperator,
      note: (request, line) => store.audit.note({ ...line, actor: operatorOf(request), at: clock.now() }),
    },
    forecast: {
      engines: (pool) => directory.status(pool),
      availability: () => directory.availability(),
      showsUnable: isLocal,
      foreseeWait: createForeseeWait({ store: store.summaries, clock }),
    },
  })
}

function openModelRouter(config: Config, { router, blobs, clock, log }: HttpParts, gate: Gate): Surface {
  const { brand: brands } = config.http
  return createRouterV2({
    ...router.actions,
    ...{ gate, brands, blobs, clock, log },
    spec: loadRouterContract({ brands, needsCredentials: gate.hasCredentials }),
    pricedAt: () => router.models.catalog().loadedAt,
    cursorSecret: router.cursorSecret,
    maxBodyBytes: config.router.maxBodyBytes,
    holdMs: config.router.deadlineMs + HOLD_GRACE_MS,
    creditsPerUsd: config.router.creditsPerUsd,
  })
}

function openContent({ shared, signer, assets, moderation, blobs, clock }: HttpParts, { answerError }: Entrance) {
  const isActive = (accountId: string) => shared?.accounts.find(accountId)?.status === 'active'
  const verify = shared === null ? signer.verify : refuseInactive(signer.verify, isActive)
  const checked = { links: moderation.links, blobs }
  return (gate: Gate) =>
    createContentSurface({ gate, answerError, verify, openContent: assets.openContent, checked, clock })
}

async function openWorkerApi(config: Config, parts: HttpParts, gate: Gate): Promise<Surface[]> {
  const { gateway, version, clock, log } = parts
  if (gateway === null) return []
  const worker = createWorkerSurface({
    ...{ gate, clock, log, gateway, version },
    serviceId: await readServiceId(parts.store),
    maxModelBytes: config.router.maxBodyBytes,
    holdMs: config.router.deadlineMs + HOLD_GRACE_MS,
  })
  return [worker]
}

export async function openHttp(config: Config, parts: HttpParts) {
  const { shared, deployments, readiness, metrics, turns, onTransferred, log } = parts
  const { http } = config
  const gateOptions = toGateOptions(config, parts)
  const gate = createGate(gateOptions)
  const entrance = openEntrance(config, parts, gate)
  const { answerError, accountConnections, guardOperator, needsAdminToken } = entrance
  const spec = loadJobsContract({ brands: http.brand, needsCredentials: gate.hasCredentials, needsAdminToken })
  const endpoints = { ...parts.endpoints, ...openShares(parts, parts.endpoints) }
  const router = openModelRouter(config, parts, gate)
  const createContent = openContent(parts, entrance)
  const operator = createOperatorSurface({
    // Where there are many accounts, only the operator may see figures about all of them.
    guardMetrics: shared === null ? (request) => gate.authenticate(request, 'bearer') : guardOperator,
    role: config.role,
    readiness,
    metrics,
  })
  // Counted when they are asked for: by then all surfaces are there.
  const openStreams = () => surfaces.reduce((sum, surface) => sum + (surface.openStreams?.() ?? 0), 0)
  const adminParts = { ...parts, ...entrance, guard: guardOperator, needsCredentials: needsAdminToken }
  const admin = entrance.hasOperators
    ? [openAdmin(config, { ...adminParts, openStreams, heldBy: accountConnections.count })]
    : []
  const worker = await openWorkerApi(config, parts, gate)
  const surfaceParts = toSurfaceParts(config, gate, { ...parts, ...entrance, endpoints })
  const optional = await openOptionalSurfaces(surfaceParts)
  const home = () => optional.map((surface) => surface.home?.() ?? null).find((path) => path !== null) ?? null
  const others = [router, ...optional, ...admin, ...worker].flatMap(({ reference }) => reference ?? [])
  const surfaces: readonly Surface[] = [
    ...[
      openJobsApi(config, { ...parts, endpoints }, entrance, spec),
      router,
      createContent(gate),
      ...admin,
      ...worker,
      operator,
    ],
    ...[createDocs({ gate, document: spec.shown, home, others }), ...optional],
  ]
  const bodyMemory = createBodyMemory({ ...toBodyLimits(config), turns, onTransferred })
  const serverOptions = {
    host: http.host,
    maxConnections: toConnectionLimit(readOpenFileLimit()),
    // Where no run is waited for first, this is all the time that requests under way have.
    ...(config.role === 'api' && { drainMs: config.jobs.drainTimeoutMs }),
    answerError,
    onAnswered: config.log.requests ? (request: AnsweredRequest) => log.info(request, 'answered') : null,
    trace: parts.tracer === undefined ? null : createTraceRequest(parts.tracer),
    bodyMemory,
  }
  const routeDeployment = deployments === null ? null : createRouteDeployment(http.mountPrefix)
  const server = await openServer({ ...serverOptions, port: http.port, gate, surfaces, routeDeployment })
  const editorParts = { gateOptions, surfaceParts, createContent, server: serverOptions }
  const frontend =
    config.frontend === null ? null : await openFrontend(config.frontend, editorParts).catch(closing(server))
  const gauges = [
    { name: 'atelier_body_bytes', help: 'Bytes of request bodies in memory.', read: bodyMemory.heldBytes },
    ...[...optional, ...worker].flatMap(({ gauges: own }) => own ?? []),
  ]
  return { ...together(server, frontend), hasConsole: home() !== null, openStreams, gauges }
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
  return {
    ...server,
    frontendUrl: frontend?.url ?? null,
    frontendRoutes: frontend?.routes ?? [],
    close,
    [Symbol.asyncDispose]: close,
  }
}

// How many connections the listener accepts. Each needs a file descriptor, and clients that take all descriptors of the process
// would leave none for stored files, so that running jobs could not write their outputs. A share is therefore reserved.

const MAX_CONNECTIONS = 20_000
// For databases, threads, modules and outputs.
const RESERVED_FILES = 128
// An upload and a download hold a file beside their connection; most connections do not.
const SHARE = 0.75
const MIN_CONNECTIONS = 16

export function toConnectionLimit(openFiles: number | null): number {
  if (openFiles === null) return MAX_CONNECTIONS
  const room = Math.floor((openFiles - RESERVED_FILES) * SHARE)
  return Math.min(MAX_CONNECTIONS, Math.max(MIN_CONNECTIONS, room))
}

/** null where the system does not say. */
export function readOpenFileLimit(): number | null {
  try {
    const limit = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
    return limit === undefined ? null : Number(limit)
  } catch {
    return null
  }
}

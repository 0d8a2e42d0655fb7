/** The admin API of a running service: what it needs of its parts, and the streams of those who watch the whole. */
import type { FastifyRequest } from 'fastify'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { sleep } from '../../lib/waiting/sleep.ts'
import type { AssetActions } from '../compose/asset-actions.ts'
import type { RunningPools } from '../compose/engines/open-deployments.ts'
import type { OpenedDirectory } from '../compose/engines/open-directory.ts'
import type { JobActions } from '../compose/jobs/job-actions.ts'
import type { OpenedBulk } from '../compose/jobs/open-bulk.ts'
import { createStandingOf, type SharedAccounts } from '../compose/open-accounts.ts'
import type { OpenedWebhooks } from '../compose/open-webhooks.ts'
import type { Router } from '../compose/router/open-router.ts'
import type { Config } from '../config/config.ts'
import type { SignIn } from '../domain/accounts/sign-in.ts'
import { createBudgets } from '../domain/credits/budgets/manage-budgets.ts'
import { createReadStatement } from '../domain/credits/statement.ts'
import { createReadUsage } from '../domain/credits/usage-events.ts'
import { createReportUsage } from '../domain/credits/usage-report.ts'
import { DEFAULT_POOL } from '../domain/deployments/deployment.ts'
import type { Deployments } from '../domain/deployments/deployments.ts'
import type { PoolSignals } from '../domain/deployments/pool-signals.ts'
import type { CommandEngine } from '../domain/engine/directory/engine-commands.ts'
import type { EngineDirectory } from '../domain/engine/directory/engine-directory.ts'
import type { WarmPlans } from '../domain/engine/warm/warm-plans.ts'
import type { EventBus } from '../domain/events/event-bus.ts'
import type { LiveEvent } from '../domain/events/live-event.ts'
import { createReportGpuUse } from '../domain/jobs/read/gpu-report.ts'
import type { ServiceSeries } from '../domain/jobs/read/service-series.ts'
import { createEstimateWait } from '../domain/jobs/waits/wait-estimates.ts'
import { createNodeReport, type OwnNode } from '../domain/service-nodes/node-report.ts'
import type { Store } from '../domain/store.ts'
import type { WorkerGateway } from '../domain/workers/worker-gateway.ts'
import type { WorkerKeys } from '../domain/workers/worker-keys.ts'
import { createAdminAnswerError } from '../surfaces/admin/admin-operation.ts'
import {
  type AdminOptions,
  createAdmin,
  createEngineOperations,
  createJobOperations,
  createUsageOperations,
  createWorkerOperations,
  type SharedParts,
} from '../surfaces/admin/index.ts'
import { reloadModels } from '../surfaces/admin/operations/service.ts'
import type { WatchDeps } from '../surfaces/admin/operations/watch.ts'
import { createAccountConnections } from '../surfaces/kit/connections/account-connections.ts'
import type { Gate } from '../surfaces/kit/guards/gate.ts'
import { readSession } from '../surfaces/kit/guards/session-cookie.ts'
import { SharedStreams } from '../surfaces/kit/streams/shared-streams.ts'
import { encodeFrame } from '../surfaces/kit/streams/sse.ts'
import type { Surface } from '../surfaces/kit/surface.ts'

interface AdminParts extends Omit<AdminSurfaceParts, 'actorOf' | 'operations' | 'drain' | 'workersOf'> {
  readonly gate: Gate
  readonly isEveryoneOperator: boolean
  readonly signIn: SignIn
  readonly own: OwnNode
  readonly pools: RunningPools | null
  readonly bus: EventBus<LiveEvent>
  readonly directory: EngineDirectory
  readonly commandEngine: CommandEngine
  readonly refreshLists: () => Promise<void>
  readonly warm: WarmPlans
  readonly catalogOf: OpenedDirectory['catalogOf']
  readonly jobs: JobActions
  readonly bulk: Pick<OpenedBulk, 'actions'>
  readonly assets: Pick<AssetActions, 'namedFiles'>
  readonly series: ServiceSeries
  readonly router: Router
  readonly workerKeys: WorkerKeys
  readonly webhooks: Pick<OpenedWebhooks, 'usageExport'>
  /** null: no worker of another machine may join. */
  readonly gateway: WorkerGateway | null
}

// While transactions that may be writing an entry of the ledger end.
const LOOK_AGAIN_MS = 25
// People who look at the service, and their tabs.
const MAX_OPERATOR_STREAMS = 64

/** The operator behind a request, as the audit names them. */
export function operatorOf({ raw }: FastifyRequest): string {
  return `admin token from ${raw.socket.remoteAddress ?? 'nowhere'}`
}

export function openAdmin(config: Config, { pools, ...parts }: AdminParts): Surface {
  const { gate, store, directory, jobs } = parts
  const streams = new SharedStreams({
    accountConnections: createAccountConnections(MAX_OPERATOR_STREAMS),
    isWelcome: () => true,
    onCredentialsChanged: () => () => {},
  })
  const surface = createAdminSurface(config, {
    ...parts,
    drain: () => streams.close(encodeFrame('notice', JSON.stringify({ kind: 'drain' }))),
    actorOf: operatorOf,
    // Without deployments there is the common pool alone, and this process knows what it runs of it.
    workersOf: pools?.countWorkers ?? ((pool) => parts.own.about().workers[pool] ?? 0),
    operations: [
      createWorkerOperations({ workerKeys: parts.workerKeys, takesWorkers: parts.gateway !== null }),
      createEngineOperations({
        engines: parts.directory,
        commandEngine: parts.commandEngine,
        refreshLists: parts.refreshLists,
        ...{ warm: parts.warm, catalogOf: parts.catalogOf },
      }),
      ...(parts.shared === null ? [] : [createUsageOperations(parts.webhooks.usageExport)]),
      (app, kit) => reloadModels(app, { kit, reload: parts.router.reload }),
      createJobOperations({
        ...{ jobs: store.jobs, summaries: store.summaries, records: jobs.records, cancel: jobs.cancel },
        ...{ queue: jobs.queue, bulk: parts.bulk.actions, gpuOfJob: store.gpuUse.ofJob },
        hasAccount: async (id) => (await store.accounts.findUse(id)) !== null,
        hasPool: (pool) => pool === DEFAULT_POOL || isDeployment(parts.deployments, pool),
        ...{ streams, bus: parts.bus, series: parts.series, log: parts.log },
        assets: parts.assets.namedFiles,
        cursorSecret: parts.router.cursorSecret,
        standingOf: createStandingOf(config, store, parts.shared),
        estimateWait: createEstimateWait({ store: store.summaries, clock: parts.clock }),
        engines: (pool) => directory.status(pool),
        availability: () => directory.availability(),
        sessionOf: toSessionOf(parts),
        headersOf: (request) => gate.answerHeaders(request.headers.origin, request.id),
      }),
    ],
  })
  return { ...surface, openStreams: () => streams.openStreams() }
}

function isDeployment(deployments: Deployments | null, id: string): boolean {
  return deployments !== null && (deployments.find(id) !== null || deployments.copiesOf(id).length > 0)
}

type SessionParts = Pick<AdminParts, 'gate' | 'signIn' | 'isEveryoneOperator'>

/** Who came with a session may watch for as long as it lasts. */
function toSessionOf({ gate, signIn, isEveryoneOperator }: SessionParts): WatchDeps['sessionOf'] {
  const kind = isEveryoneOperator ? 'account' : 'operator'
  const open = (text: string) => (isEveryoneOperator ? signIn.openAccount(text) : signIn.openOperator(text))
  return ({ raw }) => {
    // Without credentials there is nothing that could end.
    if (!gate.hasCredentials || raw.headers.authorization !== undefined) return undefined
    const text = readSession(raw, gate.addressOf(raw), kind)
    return text === null ? undefined : { text, isGood: async () => (await open(text)) !== null }
  }
}

/** Builds the admin API. The running service uses it, and so do the administrative commands when no service holds the data folder. */
interface AdminSurfaceParts
  extends Pick<AdminOptions, 'guard' | 'needsCredentials' | 'actorOf' | 'operations' | 'drain'> {
  readonly store: Store
  /** null: the local kind. */
  readonly shared: SharedAccounts | null
  readonly deployments: Deployments | null
  /** null: this process runs no jobs. */
  readonly workersOf: RunningPools['workers']['count'] | null
  /** The process that answers; null: it is none of the service. */
  readonly own: OwnNode | null
  readonly poolSignals: PoolSignals
  readonly openStreams: () => number
  /** How many event streams and sockets of an account are open in this process. */
  readonly heldBy: (accountId: string) => number
  readonly version: string
  readonly clock: Clock
  readonly log: Log
}

export function createAdminSurface(config: Config, parts: AdminSurfaceParts): Surface {
  const { store, clock, openStreams } = parts
  const countPools = store.deployments.count
  const workersOf = parts.workersOf ?? (() => 0)
  return createAdmin({
    guard: parts.guard,
    needsCredentials: parts.needsCredentials,
    actorOf: parts.actorOf,
    operations: parts.operations,
    ...(parts.drain !== undefined && { drain: parts.drain }),
    answerError: createAdminAnswerError(parts.log),
    clock,
    audited: (entry) => store.audited(entry),
    audit: store.audit,
    nodes: { reportNodes: createNodeReport({ ...openReportParts(parts), clock }), poolSignals: parts.poolSignals },
    overview: {
      kind: config.kind,
      version: parts.version,
      countJobs: () => store.jobs.countByStatus(),
      countPools,
      workersOf,
      openStreams,
    },
    shared: toSharedParts(config, { ...parts, workersOf }),
  })
}

function openReportParts({ store, own, clock }: AdminSurfaceParts) {
  return {
    store: store.nodes,
    own,
    async drivenEngines() {
      const now = clock.now()
      const engines = (await store.engines.list()).filter(({ nodeId, heldUntil }) => nodeId !== '' && heldUntil > now)
      return engines.map(({ nodeId, status: { id } }) => ({ nodeId, engineId: id }))
    },
  }
}

function toSharedParts(config: Config, parts: AdminSurfaceParts): SharedParts | null {
  const { store, shared, deployments, workersOf } = parts
  if (shared === null || deployments === null) return null
  return {
    accounts: shared.accounts,
    apiKeys: shared.apiKeys,
    ledger: store.ledger,
    budgets: createBudgets({ store: store.budgets, audited: (entry) => store.audited(entry), clock: parts.clock }),
    reportUsage: createReportUsage(store.ledger, parts.clock),
    reportGpuUse: createReportGpuUse(store.gpuUse, parts.clock),
    readStatement: createReadStatement(store.ledger, parts.clock),
    readUsage: createReadUsage({ ledger: store.ledger, pause: () => sleep(LOOK_AGAIN_MS) }),
    use: store.accounts,
    streamsOf: parts.heldBy,
    deployments,
    endpoints: store.endpoints,
    deploymentView: {
      countPools: store.deployments.count,
      workersOf: workersOf ?? (() => 0),
      domain: config.deployments?.domain ?? null,
      mountPrefix: config.http.mountPrefix,
    },
    defaultWorkers: Math.max(1, config.jobs.workers),
  }
}

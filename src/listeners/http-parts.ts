/** What the HTTP side of the service is made of. */
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { Tracer } from '../../lib/tracing/tracer.ts'
import type { Turns } from '../../lib/waiting/turns.ts'
import type { AssetActions } from '../compose/asset-actions.ts'
import type { RunningPools } from '../compose/engines/open-deployments.ts'
import type { OpenedDirectory } from '../compose/engines/open-directory.ts'
import type { OpenedReleased } from '../compose/engines/open-released.ts'
import type { JobActions } from '../compose/jobs/job-actions.ts'
import type { OpenedBulk } from '../compose/jobs/open-bulk.ts'
import type { Metrics } from '../compose/metrics/open-metrics.ts'
import type { SharedAccounts } from '../compose/open-accounts.ts'
import type { OpenedBuilds } from '../compose/open-builds.ts'
import type { OpenedEndpoints } from '../compose/open-endpoints.ts'
import type { OpenedModeration } from '../compose/open-moderation.ts'
import type { OpenedSchedules } from '../compose/open-schedules.ts'
import type { OpenedWebhooks } from '../compose/open-webhooks.ts'
import type { Readiness } from '../compose/readiness.ts'
import type { Router } from '../compose/router/open-router.ts'
import type { OpenedPartnerNodes } from '../compose/router/partner-nodes.ts'
import type { OpenedBlobs } from '../compose/storage/open-blobs.ts'
import type { Config } from '../config/config.ts'
import type { Secrets } from '../config/secrets.ts'
import type { Authenticate } from '../domain/accounts/caller.ts'
import type { PerAccount } from '../domain/accounts/limits/tiers.ts'
import type { SignIn } from '../domain/accounts/sign-in.ts'
import type { ContentSigner } from '../domain/assets/signed-url.ts'
import type { Deployments } from '../domain/deployments/deployments.ts'
import type { PoolSignals } from '../domain/deployments/pool-signals.ts'
import type { CommandEngine } from '../domain/engine/directory/engine-commands.ts'
import type { EngineDirectory } from '../domain/engine/directory/engine-directory.ts'
import type { WarmPlans } from '../domain/engine/warm/warm-plans.ts'
import type { WeightManager } from '../domain/engine/weights/manage-weights.ts'
import type { EventBus } from '../domain/events/event-bus.ts'
import type { LiveEvent } from '../domain/events/live-event.ts'
import type { ServiceSeries } from '../domain/jobs/read/service-series.ts'
import type { OwnNode } from '../domain/service-nodes/node-report.ts'
import type { SharedCounts } from '../domain/service-nodes/shared-counts.ts'
import type { Store } from '../domain/store.ts'
import type { WorkerGateway } from '../domain/workers/worker-gateway.ts'
import type { WorkerKeys } from '../domain/workers/worker-keys.ts'
import { createDeploymentHosts, type DeploymentHosts } from '../surfaces/kit/guards/addresses.ts'
import type { GateOptions } from '../surfaces/kit/guards/gate.ts'
import type { SurfaceParts } from '../surfaces/kit/surface-parts.ts'

/** For tests. */
export interface HttpOverrides {
  /** Finds the account that a credential belongs to. */
  readonly authenticate?: Authenticate
  /** Changes what optional surfaces are given. */
  readonly surfaceParts?: (parts: SurfaceParts) => SurfaceParts
}

export interface HttpParts {
  readonly store: Store
  readonly version: string
  readonly secrets: Secrets
  readonly authenticate: Authenticate
  /** null: the local kind. */
  readonly shared: SharedAccounts | null
  readonly deployments: Deployments | null
  readonly released: OpenedReleased
  readonly pools: RunningPools | null
  readonly bus: EventBus<LiveEvent>
  readonly directory: EngineDirectory
  readonly commandEngine: CommandEngine
  readonly refreshLists: () => Promise<void>
  readonly warm: WarmPlans
  readonly catalogOf: OpenedDirectory['catalogOf']
  readonly weights: WeightManager
  readonly overrides: HttpOverrides
  readonly jobs: JobActions
  readonly assets: AssetActions
  readonly router: Router
  readonly endpoints: OpenedEndpoints
  readonly schedules: OpenedSchedules
  readonly bulk: OpenedBulk
  readonly builds: OpenedBuilds
  readonly partner: OpenedPartnerNodes
  readonly blobs: OpenedBlobs['blobs']
  readonly maxUploadBytes: PerAccount
  readonly workerKeys: WorkerKeys
  /** null: no worker of another machine may join. */
  readonly gateway: WorkerGateway | null
  readonly readiness: Readiness
  readonly own: OwnNode
  readonly counts: SharedCounts
  readonly poolSignals: PoolSignals
  readonly series: ServiceSeries
  readonly signer: ContentSigner
  readonly signIn: SignIn
  readonly webhooks: OpenedWebhooks
  readonly moderation: OpenedModeration
  readonly metrics: Metrics
  /** Shared by all long work on the main thread. */
  readonly turns: Turns
  /** Called for every chunk of a request's body. */
  readonly onTransferred: (bytes: number) => void
  /** Left out: tracing is off. */
  readonly tracer?: Tracer
  readonly clock: Clock
  readonly log: Log
}

/** Who is let in, by the configuration: which hosts and origins, which credentials, which sessions. */
export function toGateOptions(config: Config, parts: HttpParts): GateOptions {
  const { secrets, authenticate, shared } = parts
  const { http } = config
  return {
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
}

function toDeploymentHosts(config: Config['deployments']): DeploymentHosts | null {
  if (config === null || config.domain === null) return null
  return createDeploymentHosts(config.domain)
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

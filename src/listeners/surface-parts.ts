/** What the surfaces that may be left out receive. */
import { systemTicker } from '../../lib/clock.ts'
import { openPictures } from '../compose/asset-actions.ts'
import { createStandingOf } from '../compose/open-accounts.ts'
import type { OpenedEndpoints } from '../compose/open-endpoints.ts'
import type { OpenedShares } from '../compose/open-shares.ts'
import type { Config } from '../config/config.ts'
import { createOwnKeys } from '../domain/accounts/keys/own-keys.ts'
import { createUserFiles } from '../domain/accounts/user-files.ts'
import { createReportUsage } from '../domain/credits/usage-report.ts'
import { DEFAULT_POOL } from '../domain/deployments/deployment.ts'
import { createReportGpuUse } from '../domain/jobs/read/gpu-report.ts'
import { asChosen, withinAccount } from '../domain/jobs/submit/chosen-id.ts'
import { createEstimateWait } from '../domain/jobs/waits/wait-estimates.ts'
import type { Gate } from '../surfaces/kit/guards/gate.ts'
import type { SurfaceParts } from '../surfaces/kit/surface-parts.ts'
import type { HttpParts } from './http-parts.ts'

// Longer than any call may take, so that an answer in the last moment still finds its connection open.
export const HOLD_GRACE_MS = 60_000

type OpenParts = HttpParts &
  Pick<SurfaceParts, 'accountConnections' | 'poolOf'> & {
    readonly isEveryoneOperator: boolean
    readonly endpoints: OpenedEndpoints & OpenedShares
  }

export function toSurfaceParts(config: Config, gate: Gate, parts: OpenParts): SurfaceParts {
  const {
    accountConnections,
    poolOf,
    shared,
    signer,
    store,
    bus,
    directory,
    jobs,
    assets,
    version,
    turns,
    clock,
    log,
  } = parts
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
    poolOf,
    refreshLists: parts.refreshLists,
    catalog: (pool) => directory.catalog(pool ?? DEFAULT_POOL),
    jobs: { ...jobs, rerun: parts.bulk.rerun, chooseId: shared === null ? asChosen : withinAccount },
    isAtLimit: async (accountId) =>
      shared !== null &&
      ((await store.accounts.findUse(accountId))?.running ?? 0) >= shared.limitsOf(accountId).concurrentJobs,
    assets: assets.namedFiles,
    library: {
      ...assets.library,
      chooseId: shared === null ? asChosen : withinAccount,
    },
    pictures: openPictures(),
    userFiles: createUserFiles({ store: store.userFiles, clock }),
    content: {
      sign: signer.sign,
      servesBytes: config.kind === 'local',
    },
    accountConnections,
    deploy: { ...parts.released, domain: config.deployments?.domain ?? null },
    console: toConsoleParts(config, parts),
    partner: {
      ...parts.partner,
      blobs: parts.blobs,
      maxBodyBytes: config.router.maxBodyBytes,
      holdMs: config.router.deadlineMs + HOLD_GRACE_MS,
    },
    chat: {
      access: parts.router.actions.access,
      runModel: parts.router.actions.runModel,
      readMedia: parts.router.readMedia,
      blobs: parts.blobs,
      maxBodyBytes: config.router.maxBodyBytes,
      holdMs: config.router.deadlineMs + HOLD_GRACE_MS,
    },
    endpoints: {
      ...parts.endpoints,
      watchJob: jobs.watching.watchJob,
      webhookSecret: parts.webhooks.webhooks.commonSecret,
      tellAs: parts.webhooks.tellAs,
      ticker: systemTicker,
    },
    builds: parts.builds,
    limits: {
      maxBodyBytes: config.http.maxBodyBytes,
      maxUploadBytes: config.assets.maxUploadBytes,
    },
  }
  return parts.overrides.surfaceParts?.(given) ?? given
}

function toConsoleParts(config: Config, parts: OpenParts): SurfaceParts['console'] {
  const { shared, store, directory, jobs, assets, clock } = parts
  return {
    kind: config.kind,
    signIn: parts.signIn,
    isEveryoneOperator: parts.isEveryoneOperator,
    hasAdmin: parts.isEveryoneOperator || parts.secrets.adminToken !== null,
    hasRouter: parts.router.models.catalog().size > 0,
    mayBuild: parts.builds.mayBuild,
    mayDeploy: parts.released.mayDeploy,
    standingOf: createStandingOf(config, store, shared),
    summaries: store.summaries,
    reportUsage: createReportUsage(store.ledger, clock),
    reportGpuUse: createReportGpuUse(store.gpuUse, clock),
    gpuOfJob: store.gpuUse.ofJob,
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
  }
}

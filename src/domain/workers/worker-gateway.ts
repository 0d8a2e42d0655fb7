/** Everything that a joined worker may do, as one value for the surface that it speaks to. */

import { createHeldClaims } from './held-claims.ts'
import {
  createLeasedModels,
  createWorkerModels,
  type LeasedModelsDeps,
  type RunNodeModel,
  type WorkerModelsDeps,
} from './leased-models.ts'
import { createWorkerBuilds, type WorkerBuilds, type WorkerBuildsDeps } from './worker-builds.ts'
import { createWorkerEngines, type WorkerEngines, type WorkerEnginesDeps } from './worker-engines.ts'
import { createWorkerFiles, MAX_PIECE_BYTES, type WorkerFiles, type WorkerFilesDeps } from './worker-files.ts'
import type { WorkerKeys } from './worker-keys.ts'
import { WorkerLive, type WorkerLiveDeps } from './worker-live.ts'
import { createWorkerReleases, type WorkerReleases, type WorkerReleasesDeps } from './worker-releases.ts'
import { createWorkerRuns, type WorkerRuns, type WorkerRunsDeps } from './worker-runs.ts'

export interface WorkerGateway {
  readonly keys: WorkerKeys
  readonly terms: { readonly leaseMs: number; readonly maxWaitMs: number; readonly pieceBytes: number }
  readonly runs: WorkerRuns
  readonly files: WorkerFiles
  readonly engines: WorkerEngines
  readonly releases: WorkerReleases
  readonly builds: WorkerBuilds
  readonly live: WorkerLive
  readonly runModel: RunNodeModel
}

type GatewayDeps = Omit<WorkerRunsDeps, 'held' | 'leaseMs' | 'releases'> &
  Omit<WorkerFilesDeps, 'held'> &
  Omit<WorkerEnginesDeps, 'holdMs' | 'directory' | 'releases'> &
  WorkerReleasesDeps &
  WorkerBuildsDeps &
  Omit<WorkerModelsDeps, 'held' | 'models'> &
  Omit<WorkerLiveDeps, 'held' | 'bus'> & {
    readonly keys: WorkerKeys
    readonly bus: WorkerRunsDeps['bus'] & WorkerLiveDeps['bus']
    readonly directory: WorkerRunsDeps['directory'] & WorkerEnginesDeps['directory'] & LeasedModelsDeps['directory']
  }

/** As long as the leases of workers that have the store. */
const LEASE_MS = 30_000
const MAX_WAIT_MS = 20_000

export function createWorkerGateway(deps: GatewayDeps): WorkerGateway {
  const held = createHeldClaims(deps)
  const releases = createWorkerReleases(deps)
  return {
    keys: deps.keys,
    terms: { leaseMs: LEASE_MS, maxWaitMs: MAX_WAIT_MS, pieceBytes: MAX_PIECE_BYTES },
    runs: createWorkerRuns({ ...deps, held, releases, leaseMs: LEASE_MS }),
    files: createWorkerFiles({ ...deps, held }),
    engines: createWorkerEngines({ ...deps, releases, holdMs: LEASE_MS }),
    releases,
    builds: createWorkerBuilds(deps),
    live: new WorkerLive({ ...deps, held }),
    runModel: createWorkerModels({ ...deps, held, models: createLeasedModels(deps) }),
  }
}

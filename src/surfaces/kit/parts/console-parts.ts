/** What the console is given beside the parts of every optional surface: who is signed in, and what this service offers. */

import type { Micros } from '../../../../lib/text/usd.ts'
import type { Caller } from '../../../domain/accounts/caller.ts'
import type { OwnKeys } from '../../../domain/accounts/keys/own-keys.ts'
import type { SignIn } from '../../../domain/accounts/sign-in.ts'
import type { OpenContent } from '../../../domain/assets/asset-content.ts'
import type { PoolPrice } from '../../../domain/credits/prices.ts'
import type { ReportUsage } from '../../../domain/credits/usage-report.ts'
import type { ListedEngine } from '../../../domain/engine/directory/engine-directory.ts'
import type { LiveRuns } from '../../../domain/jobs/read/live-runs.ts'
import type { WatchJob } from '../../../domain/jobs/read/watch-job.ts'
import type { SummaryStore } from '../../../domain/jobs/summaries/summary-store.ts'
import type { EstimateWait } from '../../../domain/jobs/waits/wait-estimates.ts'
import type { Access } from '../../../domain/models/access/model-access.ts'
import type { CallStore } from '../../../domain/models/calls/call-store.ts'

/** What the page shows of the account that is signed in. */
export interface AccountStanding {
  readonly id: string
  readonly name: string
  /** null: the local kind has none. */
  readonly tier: string | null
  readonly running: number
  readonly queued: number
  /** null: as many as there are workers. */
  readonly maxRunning: number | null
  readonly maxQueued: number
  /** What a job of the common pool costs; null: nothing. */
  readonly jobPrice: PoolPrice | null
  /** null: the account is not metered. */
  readonly credit: { readonly available: Micros; readonly held: Micros } | null
}

/** By class and by weights file, the engines that have it. */
export interface EngineAvailability {
  readonly classes: ReadonlyMap<string, readonly string[]>
  readonly weights: ReadonlyMap<string, readonly string[]>
}

export interface ModelParts {
  readonly access: Pick<Access, 'catalogFor' | 'whyNot'>
  readonly calls: Pick<CallStore, 'list'>
}

export interface ConsoleParts {
  readonly kind: 'local' | 'cloud' | 'serverless'
  readonly signIn: SignIn
  /** Whoever may use the service is its operator: the local kind without an admin token. */
  readonly isEveryoneOperator: boolean
  readonly hasAdmin: boolean
  readonly hasRouter: boolean
  readonly standingOf: (caller: Caller) => Promise<AccountStanding>
  readonly reportUsage: ReportUsage
  /** null: the local kind, which has none. */
  readonly keys: OwnKeys | null
  readonly models: ModelParts
  readonly summaries: Pick<SummaryStore, 'search' | 'findMany' | 'findDetails' | 'findOutputs' | 'count'>
  readonly estimateWait: EstimateWait
  readonly watchJob: WatchJob
  readonly openContent: OpenContent
  readonly liveRuns: Pick<LiveRuns, 'read' | 'follow'>
  /** Those that may run jobs of a pool. */
  readonly engines: (pool: string) => readonly ListedEngine[]
  readonly availability: () => EngineAvailability
  readonly cursorSecret: Uint8Array
  /** Hosts other than ours that addresses of outputs lead to. */
  readonly contentOrigins: readonly string[]
}

/**
 * Jobs in short, for whoever looks at many of them: no graph, no outputs, no traceback. A search finds those that fit a filter by
 * the index that narrows it most, and walks a bounded number of entries; whatever is left then is behind the cursor of its page.
 */
import type { Micros } from '../../../../lib/text/usd.ts'
import type { Output, OutputType, Progress } from '../job.ts'
import type { JobOrigin } from '../submit/job-origin.ts'
import type { JobStatus } from '../transitions.ts'
import type { QueueReading } from '../waits/queue-reading.ts'

export interface JobSummary {
  readonly id: string
  readonly accountId: string
  readonly version: number
  readonly status: JobStatus
  readonly title: string
  readonly pool: string
  /** Of the present or the last attempt; null while it waits. */
  readonly engineId: string | null
  readonly priority: number
  readonly attempt: number
  readonly createdAt: Date
  readonly startedAt: Date | null
  readonly completedAt: Date | null
  readonly expiresAt: Date
  readonly progress: Progress | null
  readonly error: SummaryError | null
  /** null: it costs nothing, or has not ended. */
  readonly charged: Micros | null
  readonly outputs: number
  /** The first picture among its outputs. */
  readonly thumb: { readonly assetId: string } | null
  readonly queuePosition: number | null
  /** The job whose result answered this one; null: it is run itself. */
  readonly reusedFrom: string | null
  /** It is held until then, or was; null: it was not asked to be. */
  readonly notBefore: Date | null
  /** Where it still waits then it ends `expired`; null: it may wait for as long as it is kept. */
  readonly queueUntil: Date | null
  readonly metadata: Readonly<Record<string, string>>
}

export interface SummaryError {
  readonly code: string
  /** Its beginning. */
  readonly message: string
  readonly nodeId: string | null
  readonly classType: string | null
}

/** An attempt that ended before its job did. */
export interface JobAttempt {
  readonly number: number
  readonly engineId: string | null
  readonly from: Date | null
  readonly to: Date
  /** `returned`: its worker gave it back, as in a drain. `engine_fault`: it failed for what may have been its engine's reason. */
  readonly why: 'worker_lost' | 'engine_lost' | 'engine_fault' | 'returned'
}

/** What is told of one job beside its summary. */
export interface JobDetails {
  readonly summary: JobSummary
  readonly attempts: readonly JobAttempt[]
  /** Of its recipe; null: it has none. */
  readonly terms: string | null
  /** What was set aside for it; null: it costs nothing. */
  readonly held: Micros | null
  readonly origin: JobOrigin
  /** The batch that it came with; null: it came alone. */
  readonly batchId: string | null
}

export const SUMMARY_MESSAGE_LENGTH = 200

/** null: whatever it is. */
export interface SummaryFilter {
  readonly statuses: readonly JobStatus[] | null
  readonly since: Date | null
  /** Exclusive. */
  readonly until: Date | null
  readonly code: string | null
  /** What failures of one reason have in common (failure-signature.ts). */
  readonly failure: string | null
  readonly classType: string | null
  readonly weights: string | null
  readonly engine: string | null
  readonly pool: string | null
  readonly metadata: Readonly<Record<string, string>>
  /** Has outputs: of this type, of this node. */
  readonly outputs: OutputFilter | null
  /** An id or its beginning, a metadata value or its beginning, an error code, or a part of a title, a class or a weights name. */
  readonly text: string | null
}

/** `any`, null: whatever it is. */
export interface OutputFilter {
  readonly type: OutputType | 'any'
  readonly nodeId: string | null
}

export const NO_FILTER: SummaryFilter = {
  ...{ statuses: null, since: null, until: null, code: null, failure: null, classType: null, weights: null },
  ...{ engine: null, pool: null, metadata: {}, outputs: null, text: null },
}

interface SummaryKey {
  readonly createdAt: Date
  readonly id: string
}

export interface SummaryQuery {
  readonly filter: SummaryFilter
  readonly order: 'newest' | 'oldest'
  readonly limit: number
  /** The last entry of the page before. */
  readonly after: SummaryKey | null
  readonly now: Date
}

export interface SummaryPage {
  readonly summaries: readonly JobSummary[]
  /** Where to go on; null: there is nothing more. A page may be short, or empty, and still have a next one. */
  readonly next: SummaryKey | null
}

export type OutputsOf = Pick<JobSummary, 'id' | 'expiresAt'>

export type StatusCounts = Readonly<Record<JobStatus, number>>

/** Whose jobs are looked at: those of one account, or, for the operator alone, of all. */
export type SummaryScope = string | null

/** What somebody may be about to type: `text` is how it begins, or a part of a class or a weights file. */
export type SuggestionWish =
  | { readonly of: 'keys'; readonly text: string }
  | { readonly of: 'classes' | 'weights'; readonly text: string }
  | { readonly of: 'values'; readonly key: string; readonly text: string }

export interface SummaryStore {
  /** Over all accounts a text is not looked for among metadata. */
  search(scope: SummaryScope, query: SummaryQuery): Promise<SummaryPage>
  /** Those in the scope that are there, in no order. */
  findMany(scope: SummaryScope, jobIds: readonly string[], now: Date): Promise<readonly JobSummary[]>
  findDetails(accountId: string, jobId: string, now: Date): Promise<JobDetails | null>
  /** By job, the outputs that it lists; jobs that are not the account's have none. */
  findOutputs(accountId: string, jobs: readonly OutputsOf[]): Promise<ReadonlyMap<string, readonly Output[]>>
  /** A bounded part of the account's queue in the pool, and its latest runs there. */
  readQueue(accountId: string, pool: string): Promise<QueueReading>
  /** How many fit, whatever their status; null: more than are counted for one question. */
  count(scope: SummaryScope, filter: SummaryFilter, now: Date): Promise<StatusCounts | null>
  /** How many jobs of all accounts came to each end from the one time until the other. Those that never began are told as expired only. */
  countEnded(from: Date, to: Date): Promise<StatusCounts>
  /** Words that the account's jobs have, each once, a bounded number of them. */
  suggest(accountId: string, wish: SuggestionWish, limit: number): Promise<readonly string[]>
  /** Removes recipes that no job has any more; returns how many. */
  sweepRecipes(now: Date, limit: number): Promise<number>
}

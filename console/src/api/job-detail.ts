/** One job with everything that its page shows, as `GET /console/v1/jobs/{id}` and its neighbours answer. */
import type { JobError, Summary } from './summary.ts'

export interface Output {
  readonly asset_id: string
  readonly node_id: string
  readonly node_title: string | null
  readonly name: string
  /** image, video, audio, text, file … */
  readonly type: string
  readonly content_type: string
  readonly size_bytes: number
  readonly url: string
  readonly is_saved: boolean
}

export interface Wait {
  readonly position: number | null
  readonly reason: 'paused' | 'held' | 'account_limit' | 'no_engine' | 'engines_away' | 'engines_busy' | 'behind_others'
  readonly pauses: readonly Pause[]
  readonly held_until: string | null
  readonly needs: { readonly classes: readonly string[]; readonly weights: readonly string[] }
  readonly engines: readonly WaitEngine[]
  readonly limit: { readonly running: number; readonly max_running: number } | null
  readonly estimate_seconds: number | null
}

/** What keeps jobs of the account from being taken. */
interface Pause {
  readonly by: 'service' | 'pool' | 'operator' | 'account'
  readonly reason: string | null
  readonly since: string
}

export interface WaitEngine {
  readonly id: string
  readonly state: string
  readonly is_able: boolean
  readonly running: number
  readonly slots: number
  readonly why_not: string | null
}

export interface Attempt {
  readonly number: number
  readonly engine: string | null
  readonly from: string | null
  readonly to: string | null
  readonly why: string
}

export interface JobDetail extends Omit<Summary, 'error'> {
  readonly client: string | null
  readonly idempotency_key: string | null
  /** The batch that it came with. */
  readonly batch_id: string | null
  /** Whether the client sent the editor's positions along. */
  readonly has_layout: boolean
  readonly inputs: readonly {
    readonly name: string
    readonly size_bytes: number | null
    readonly content_type: string | null
    readonly asset_id: string | null
    /** null: its record is gone. */
    readonly url: string | null
  }[]
  /** There are more than are told of. */
  readonly are_inputs_cut: boolean
  readonly outputs_list: readonly Output[]
  /** How long servers computed its attempts; left out by older services. */
  readonly gpu_seconds?: number
  readonly attempts: readonly Attempt[]
  readonly price: { readonly held_usd: string | null; readonly charged_usd: string | null } | null
  readonly wait: Wait | null
  readonly error: (JobError & { readonly traceback: string | null; readonly others_alike: number | null }) | null
  readonly links: { readonly raw: string; readonly workflow: string; readonly log: string }
}

export type NodeState = 'waiting' | 'running' | 'done' | 'cached' | 'failed' | 'interrupted' | 'skipped'

export interface NodeSpan {
  readonly id: string
  readonly class_type: string
  readonly title: string | null
  readonly state: NodeState
  readonly started_at: string | null
  readonly ended_at: string | null
  readonly step: number | null
  readonly steps: number | null
  readonly outputs: number
}

export interface NodeSpans {
  readonly nodes: readonly NodeSpan[]
  readonly is_cut: boolean
}

export interface EditorLayout {
  readonly nodes: Readonly<
    Record<
      string,
      {
        readonly x: number
        readonly y: number
        readonly w: number
        readonly h: number
        readonly title: string | null
        readonly color: string | null
      }
    >
  >
  readonly groups: readonly {
    readonly title: string
    readonly x: number
    readonly y: number
    readonly w: number
    readonly h: number
    readonly color: string | null
  }[]
}

export interface LogLine {
  readonly n: number
  readonly at: string | null
  readonly node: string | null
  readonly text: string
}

export interface LogPage {
  readonly lines: readonly LogLine[]
  readonly next: number | null
  readonly is_cut: boolean
  readonly is_complete: boolean
}

/**
 * One row of the fault matrix: a fault of the fake server, when it is switched on, how the job ends at each of the three points of
 * a run's life, and within which of the adapter's bounds. The rows are data: a test runs each, and docs/fleet.md shows them.
 */
import { type ComfyBounds, DEFAULT_BOUNDS } from '../../../../src/adapters/engines/comfyui/comfy-bounds.ts'
import type { Phase } from '../fake-comfyui/executor.ts'
import type { FakeComfy } from '../fake-comfyui/fake-comfyui.ts'
import type { FakeFaults } from '../fake-comfyui/faults.ts'

/**
 * `succeeded`: in its first attempt, on the server with the fault; `moved`: in a second one, on the other server; `again`: in a
 * second one, wherever; `canceled`; `failed:<code>`.
 */
export type Ending = 'succeeded' | 'moved' | 'again' | 'canceled' | `failed:${string}`

/** What a job may run into, beside the few that only the service waits for. */
export type BoundName = keyof ComfyBounds | 'cancelGraceMs'
/** So many times each of these bounds. */
export type Within = Partial<Record<BoundName, number>>

export interface FaultRow {
  readonly name: string
  readonly faults?: Partial<FakeFaults>
  readonly act?: (fake: FakeComfy) => void | PromiseLike<void>
  /** `point`: when the run stands at its point; `submit`: before it is submitted; `birth`: the server is like that. */
  readonly since: 'point' | 'submit' | 'birth'
  /** The user cancels when the run stands at its point. */
  readonly isCanceled?: true
  /** The server stays at the point until the job has ended, or an interrupt takes it from there. */
  readonly isKept?: true
  /** Both servers have the fault. */
  readonly isEverywhere?: true
  /** The job moves without having spent its attempt. */
  readonly isUnspent?: true
  /** At these points the server is kept from work afterwards. */
  readonly quarantines?: readonly Phase[]
  readonly graph?: 'picture' | 'text' | 'loaded' | 'raising'
  readonly ends: Ending | Readonly<Record<Phase, Ending>>
  /** Where the fault cannot strike, and why; it is turned on all the same, and the job must not mind. */
  readonly never?: Partial<Readonly<Record<Phase, string>>>
  /** Prompts that both servers may have begun. One for each attempt, unless told. */
  readonly executions?: number | Readonly<Record<Phase, number>>
  readonly within: Within
  /** Other bounds than the short ones of `within` and the long ones of everything else. */
  readonly bounds?: Partial<ComfyBounds>
  /** The server is gone: the service promises to run its jobs elsewhere within the lease and five seconds. */
  readonly isDeath?: true
}

export const PHASES: readonly Phase[] = ['queued', 'running', 'finishing']
export const ALWAYS = Number.POSITIVE_INFINITY

/** Of the settings of docs/config.md. */
const DEFAULTS = { ...DEFAULT_BOUNDS, cancelGraceMs: 10_000 }

export function endOf({ ends, never }: FaultRow, phase: Phase): Ending {
  if (never?.[phase] !== undefined) return 'succeeded'
  return typeof ends === 'string' ? ends : ends[phase]
}

export function sumOf(within: Within): number {
  return Object.entries(within).reduce((sum, [name, times]) => sum + times * (DEFAULTS[name as BoundName] ?? 0), 0)
}

/** The names of all faults that a row switches on. */
export function switchesOf({ faults = {} }: FaultRow): string[] {
  return Object.keys(faults)
}

/** A line of the table in docs/fleet.md. */
export function toDocLine(row: FaultRow): string {
  const cells = PHASES.map((phase) => (row.never?.[phase] === undefined ? endOf(row, phase) : '–'))
  const seconds = Math.ceil(sumOf(row.within) / 1000)
  return `| ${[row.name, ...cells, `${seconds} s`].join(' | ')} |`
}

/** Why some cells of the table are empty. */
export function toDocReasons(rows: readonly FaultRow[]): string[] {
  return [...new Set(rows.flatMap(({ never = {} }) => Object.values(never)))].map((reason) => `- ${reason}`)
}

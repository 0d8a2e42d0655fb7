/**
 * Several nodes with built-in engines on one Postgres under mixed load, while one fault follows the other: the trial of `test/chaos`
 * with the parts that a small installation has.
 */
import assert from 'node:assert/strict'
import type { FaultKind } from '../../chaos/faults/fault-kinds.ts'
import { planInTurn } from '../../chaos/faults/plan-faults.ts'
import { runTrial, type TrialReport } from '../../chaos/trial.ts'

export interface ClusterTrialOptions {
  readonly nodes: number
  readonly seed: number
  /** The load goes on until so many jobs are acknowledged and all faults have happened. */
  readonly jobs: number
  /** In turn, */
  readonly kinds: readonly FaultKind[]
  /** so many in all, */
  readonly faults: number
  /** with so much time between the begins of two. */
  readonly everyMs: number
  readonly say?: (line: string) => void
}

const RATES = { jobs: 6, calls: 2, uploads: 1.5 }

export async function runClusterTrial(options: ClusterTrialOptions): Promise<TrialReport> {
  const { nodes, seed, jobs, kinds, faults: count, everyMs, say = () => {} } = options
  const shape = { apis: nodes, workers: 0, engines: 0, joined: 0, bytes: 'files', bus: 'notify' } as const
  const faults = planInTurn({ seed, shape, kinds, count, everyMs })
  const lastsMs = count * everyMs
  const report = await runTrial({
    seed,
    shape,
    rates: RATES,
    faults,
    lastsMs,
    atLeast: { jobs, calls: 0, uploads: 0 },
    say,
  })
  assert.deepEqual(report.flaws, [])
  return report
}

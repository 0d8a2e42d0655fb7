/**
 * Finds the outputs that cannot run because of each faulty node: those that depend on it. Every faulty node has at least the
 * output from which it was found. The others are searched within a budget, since the answer could otherwise grow with the
 * product of outputs and faulty nodes.
 */
import type { Work } from '../../../lib/waiting/turns.ts'

// About the cost of a graph of 1,000 nodes with 1,000 outputs. In larger ones the search stops here.
const MAX_STEPS = 1_000_000
const STEP_NODES = 2000

export interface FailedOutput {
  readonly outputId: string
  /** Faulty nodes that were found while this output was validated. */
  readonly found: readonly string[]
}

export function* dependentOutputs(
  failed: readonly FailedOutput[],
  followed: ReadonlyMap<string, readonly string[]>,
  isFaulty: (nodeId: string) => boolean,
): Work<Map<string, string[]>> {
  const dependents = new Map<string, string[]>()
  let steps = 0
  let sinceYield = 0
  for (const { outputId, found } of failed) {
    if (steps > MAX_STEPS) {
      for (const nodeId of found) add(nodeId, outputId)
      continue
    }
    const seen = new Set([outputId])
    // Iterating a set also yields what is added meanwhile, so it serves as the work list too.
    for (const nodeId of seen) {
      if (isFaulty(nodeId)) add(nodeId, outputId)
      for (const next of followed.get(nodeId) ?? []) seen.add(next)
      sinceYield++
      if (sinceYield % STEP_NODES === 0) yield
    }
    steps += seen.size
  }
  return dependents

  function add(nodeId: string, outputId: string): void {
    const outputs = dependents.get(nodeId)
    if (outputs === undefined) dependents.set(nodeId, [outputId])
    else outputs.push(outputId)
  }
}

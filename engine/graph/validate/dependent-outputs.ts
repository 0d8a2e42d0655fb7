/**
 * Which outputs cannot run because of which faulty nodes: those that really lead to them. Every faulty node gets at least the
 * output that found it; the rest is searched within a budget, since many outputs over many faulty nodes would otherwise answer
 * with the product of both.
 */
import type { Work } from '../../../lib/waiting/turns.ts'

// About what a graph of 1,000 nodes with 1,000 outputs costs; larger ones are cut, never slow.
const MAX_STEPS = 1_000_000
const STEP_NODES = 2000

export interface FailedOutput {
  readonly outputId: string
  /** Faulty nodes that were found while this output was judged. */
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
    // A set hands out what is added while it is iterated, so it is the list of what is left to visit as well.
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

/**
 * How long nodes took in earlier runs of this process, by their class, so that progress is a share of the time and not of the nodes.
 * Bounded, and in memory only: after a start the first runs count their nodes and sampling steps again.
 */
import type { Graph } from '../../../../engine/graph/graph.ts'
import type { EngineEvent } from '../../../../engine/graph/run-event.ts'

export interface NodeTimes {
  /** By node, how long it will take in milliseconds; null: too little is known of this graph, or it is over before anybody looks. */
  expect(graph: Graph): ReadonlyMap<string, number> | null
  /** Listens to one run. */
  follow(graph: Graph): { take(event: EngineEvent, atMs: number): void }
}

const MAX_CLASSES = 2000
/** Below this it does not matter, and counted nodes jump less. */
const SHORT_MS = 1000
// The newest run counts half: a first one also loaded weights, and a server may have been changed.
const NEWEST = 0.5

export function createNodeTimes(): NodeTimes {
  /** By class, per step: the next run may make more of them. */
  const msPerStep = new Map<string, number>()

  function note(classType: string, ms: number): void {
    const before = msPerStep.get(classType)
    if (before === undefined && msPerStep.size >= MAX_CLASSES) return
    msPerStep.set(classType, before === undefined ? ms : before + (ms - before) * NEWEST)
  }

  return {
    expect(graph) {
      const times = new Map<string, number>()
      let [total, found] = [0, 0]
      for (const [nodeId, node] of graph) {
        const each = msPerStep.get(node.classType)
        if (each === undefined) continue
        const ms = each * stepsOf(node.inputs)
        times.set(nodeId, ms)
        total += ms
        found += 1
      }
      if (found * 2 < graph.size || total < SHORT_MS) return null
      // What was never seen here is taken for one like the others.
      for (const nodeId of graph.keys()) if (!times.has(nodeId)) times.set(nodeId, total / found)
      return times
    },
    follow(graph) {
      const begun = new Map<string, number>()
      return {
        take(event, atMs) {
          if (event.type === 'node_started') begun.set(event.nodeId, atMs)
          else if (event.type === 'node_finished') {
            const [from, node] = [begun.get(event.nodeId), graph.get(event.nodeId)]
            begun.delete(event.nodeId)
            if (from !== undefined && node !== undefined)
              note(node.classType, Math.max(0, atMs - from) / stepsOf(node.inputs))
          }
        },
      }
    },
  }
}

function stepsOf(inputs: Readonly<Record<string, unknown>>): number {
  const steps = inputs['steps']
  return typeof steps === 'number' && steps > 1 && Number.isFinite(steps) ? steps : 1
}

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Graph, GraphNode } from '../../../../engine/graph/graph.ts'
import type { EngineEvent } from '../../../../engine/graph/run-event.ts'
import { applyEngineEvent, startFold, toProgress } from './apply-engine-event.ts'
import { createNodeTimes } from './node-times.ts'

const node = (classType: string, inputs: GraphNode['inputs'] = {}): GraphNode => ({ classType, inputs, title: null })
const graphOf = (steps: number): Graph =>
  new Map([
    ['1', node('LoadModel')],
    ['2', node('Refine', { steps })],
    ['3', node('SaveImage')],
  ])
const ref = (nodeId: string, graph: Graph) => {
  return { nodeId, displayNodeId: nodeId, parentNodeId: null, classType: graph.get(nodeId)?.classType ?? '' }
}

/** A run of the graph in which each node takes so long. */
function learn(times: ReturnType<typeof createNodeTimes>, graph: Graph, took: readonly number[]): void {
  const run = times.follow(graph)
  let atMs = 0
  for (const [index, nodeId] of [...graph.keys()].entries()) {
    run.take({ type: 'node_started', ...ref(nodeId, graph) }, atMs)
    atMs += took[index] ?? 0
    run.take({ type: 'node_finished', ...ref(nodeId, graph) }, atMs)
  }
}

test('progress is a share of the time that the nodes took before, steps for steps', () => {
  const times = createNodeTimes()
  assert.equal(times.expect(graphOf(100)), null, 'nothing is known')
  learn(times, graphOf(100), [1000, 8000, 1000])
  const graph = graphOf(6000)
  const begun = startFold({ graph, earlierProgress: null, expectedMs: times.expect(graph) })
  const events: EngineEvent[] = [
    { type: 'started', nodesTotal: 3 },
    { type: 'node_started', ...ref('1', graph) },
    { type: 'node_finished', ...ref('1', graph) },
    { type: 'node_started', ...ref('2', graph) },
    { type: 'node_progress', ...ref('2', graph), value: 630, max: 6000 },
  ]
  const { value } = toProgress(events.reduce(applyEngineEvent, begun).progress)
  // 1 s of 482 s, and 630 of the 6000 steps that take 480 s; by the number of nodes it would be 37 %.
  assert.equal(Math.round(value * 1000) / 1000, Math.round(((1000 + (630 / 6000) * 480_000) / 482_000) * 1000) / 1000)
  const saved = events.concat({ type: 'node_finished', ...ref('2', graph) }).reduce(applyEngineEvent, begun)
  assert.ok(toProgress(saved.progress).value > 0.99)
})

test('a newer run counts more, a graph of mostly unknown nodes and a short one are counted by nodes', () => {
  const times = createNodeTimes()
  const graph = graphOf(1)
  learn(times, graph, [100, 100, 100])
  assert.equal(times.expect(graph), null, 'it is over in a moment')
  learn(times, graph, [9900, 100, 100])
  assert.deepEqual(
    [...(times.expect(graph) ?? [])],
    [
      ['1', 5000],
      ['2', 100],
      ['3', 100],
    ],
  )
  const unknown: Graph = new Map([...graph, ['4', node('New')], ['5', node('Newer')], ['6', node('Newest')]])
  assert.equal(times.expect(new Map([...unknown, ['7', node('Last')]])), null)
  assert.equal(Math.round(times.expect(unknown)?.get('4') ?? 0), 1733)
})

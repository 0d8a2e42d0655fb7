/**
 * The key of a result: two jobs of one account have the same key only if running both gives the same bytes. It is made of everything
 * that a run is given and of everything that the engine says decides its bytes; a graph of which one node promises nothing has no
 * key. Nothing is normalised: files remember the graph that made them as it was written, so even the order of its members counts.
 */
import { createHash } from 'node:crypto'
import type { Graph, GraphNode } from '../../../../engine/graph/graph.ts'
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import type { JobInput } from '../job.ts'

/** Whether earlier results may answer a job. */
export type ReuseMode = 'none' | 'exact'

/** What a run is given. */
export interface RunFacts {
  readonly graph: Graph
  /** The same as the text that is executed. */
  readonly text: string
  readonly inputs: readonly JobInput[]
  /** What is written into files beside the graph, as text. */
  readonly notes: string | null
  readonly hasCredentials: boolean
  readonly pool: string
  /** Who has to let its outputs through; left out or null: nobody. */
  readonly checkedBy?: string | null
}

type ResultKey = { readonly key: string } | { readonly whyNot: string }

// Grows whenever keys are made of other things than before.
const FORMAT = 'result 1'
const TIME = /%(?:year|month|day|hour|minute|second)%/

/** `catalog`: of the engines that may run it, or of the one that did. */
export function toResultKey(facts: RunFacts, catalog: NodeCatalog): ResultKey {
  const { graph, text, inputs, notes, pool, checkedBy = null } = facts
  if (facts.hasCredentials) return { whyNot: 'it brings credentials, and what a run does with them is not known' }
  const builds = new Map<string, string>()
  for (const [nodeId, node] of graph) {
    const { classType } = node
    const promise = catalog.repeatability?.(classType) ?? null
    const where = `node ${nodeId.slice(0, 100)} (${classType.slice(0, 100)})`
    if (promise === null) return { whyNot: `${where}: it is not known that the same inputs give the same result` }
    const name = promise.names.find((input) => mayHoldTime(node.inputs, input))
    if (name !== undefined) return { whyNot: `${where}: ${name} holds the time, or comes from another node` }
    builds.set(classType, promise.build)
  }
  const files = inputs.map(({ name, hash, sizeBytes, contentType }) => [name, hash, sizeBytes, contentType] as const)
  if (files.some(([, hash]) => hash === '')) return { whyNot: 'the content of one of its files is not known' }
  const parts = [FORMAT, pool, sorted(files), sorted([...builds]), notes, ...(checkedBy === null ? [] : [checkedBy])]
  const hash = createHash('sha256').update(JSON.stringify(parts)).update('\0').update(text)
  return { key: hash.digest('base64url') }
}

function mayHoldTime(inputs: GraphNode['inputs'], name: string): boolean {
  if (!Object.hasOwn(inputs, name)) return false
  const value = inputs[name]
  return typeof value !== 'string' || TIME.test(value)
}

/** By their first member, in an order that does not depend on the language of the machine. */
function sorted<Row extends readonly [string, ...unknown[]]>(rows: readonly Row[]): readonly Row[] {
  return rows.toSorted(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0))
}

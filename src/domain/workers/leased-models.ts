/**
 * Which models the run under a lease may call: those that a node of its own graph names, each under the name that such a node's call
 * has. Whoever stole a key can spend no more of an account's money than the jobs that it took would.
 */
import type { Graph } from '../../../engine/graph/graph.ts'
import { findModelNodes } from '../../../engine/graph/model-nodes.ts'
import { BoundedMap } from '../../../lib/bounded-map.ts'
import type { Turns } from '../../../lib/waiting/turns.ts'
import { ServiceError } from '../errors.ts'
import type { JobStore, Lease } from '../jobs/job-store.ts'
import { readStoredGraph } from '../jobs/run/prepare-run.ts'

export interface LeasedModels {
  /** Throws forbidden. */
  mustName(lease: Lease, call: { readonly model: string; readonly key: string }): Promise<void>
}

interface LeasedModelsDeps {
  readonly store: Pick<JobStore, 'findClaim'>
  readonly turns: Turns
}

/** By the id of the node. */
type NamedModels = ReadonlyMap<string, ReadonlySet<string>>

const MAX_REMEMBERED = 500
// The node, and which of its calls it is: a node that is given a list calls once for each member.
const CALL_KEY = /^(.+)\.(\d{1,4})$/
const MAX_CALLS = 1000

export function createLeasedModels({ store, turns }: LeasedModelsDeps): LeasedModels {
  const remembered = new BoundedMap<string, NamedModels>(MAX_REMEMBERED)

  async function read(lease: Lease): Promise<NamedModels> {
    const claim = await store.findClaim(lease.leaseId)
    if (claim?.job.id !== lease.jobId) throw new ServiceError('not_found', 'this lease holds no such job')
    const named = namedModels(await readStoredGraph(claim.workflow, turns))
    remembered.set(nameOf(lease), named)
    return named
  }

  return {
    async mustName(lease, { model, key }) {
      const named = remembered.get(nameOf(lease)) ?? (await read(lease))
      const [, nodeId = '', index = ''] = CALL_KEY.exec(key) ?? []
      if (named.get(nodeId)?.has(model) === true && Number(index) < MAX_CALLS) return
      throw new ServiceError('forbidden', 'the graph of this job names no such call of a model')
    },
  }
}

/** A lease may hold one job after another: when the answer to its claim was lost, the claim is made again. */
function nameOf({ jobId, leaseId }: Lease): string {
  return `${leaseId} ${jobId}`
}

function namedModels(graph: Graph): NamedModels {
  let texts: ReadonlySet<string> | null = null
  const nodes = findModelNodes(graph).map(({ nodeId, model }): [string, ReadonlySet<string>] => {
    if (model !== null) return [nodeId, new Set([model])]
    // The name comes from another node: it is one of the texts that stand in the graph.
    texts ??= textsOf(graph)
    return [nodeId, texts]
  })
  return new Map(nodes)
}

function textsOf(graph: Graph): ReadonlySet<string> {
  const texts = [...graph.values()].flatMap(({ inputs }) => Object.values(inputs))
  return new Set(texts.flatMap((value) => (typeof value === 'string' ? [value.trim()] : [])))
}

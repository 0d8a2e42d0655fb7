/**
 * Which calls of models the run under a lease may make: those that the nodes of its own graph make, each under the name that such a
 * node's call has. Whoever stole a worker key can call no other models for the jobs that it took. Three things are only as narrow as
 * the graph says: an input that another node computes may be anything; where a node takes pictures, any pictures pass; and a node
 * that is given a list whose length only the run knows may call a thousand times.
 */
import { hash } from 'node:crypto'
import { type Graph, isLink } from '../../../engine/graph/graph.ts'
import { createCallCounts, findModelNodes, type ModelAnswer } from '../../../engine/graph/model-nodes.ts'
import { BoundedMap } from '../../../lib/bounded-map.ts'
import { type JsonValue, parseLosslessJson, stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import type { Turns } from '../../../lib/waiting/turns.ts'
import type { EngineDirectory } from '../engine/directory/engine-directory.ts'
import type { RunModel } from '../engine/model-port.ts'
import { invalidField, ServiceError } from '../errors.ts'
import type { JobStore, Lease } from '../jobs/job-store.ts'
import { readStoredGraph, readStoredJson } from '../jobs/run/run-steps.ts'
import { type ExtraDataKeeper, joinExtraData } from '../jobs/submit/extra-data-keeper.ts'
import { type HeldClaims, toLease } from './held-claims.ts'
import type { WorkerIdentity } from './worker-keys.ts'

interface LeasedCall {
  readonly model: string
  readonly key: string
  readonly input: JsonValue
  readonly images: readonly Uint8Array[]
}

interface LeasedModels {
  /** Throws forbidden. */
  mustName(lease: Lease, call: LeasedCall): Promise<void>
}

export interface LeasedModelsDeps {
  readonly store: Pick<JobStore, 'findClaim'>
  readonly directory: Pick<EngineDirectory, 'catalog'>
  readonly turns: Turns
}

interface AllowedCalls {
  readonly models: ReadonlySet<string>
  /** null: another node makes it while the graph runs. */
  readonly inputDigest: string | null
  readonly hasImages: boolean
  readonly count: number
}

/** By the id of the node. */
type AllowedModels = ReadonlyMap<string, AllowedCalls>

const MAX_REMEMBERED = 500
// The node, and which of its calls it is: a node that is given a list calls once for each member.
const CALL_KEY = /^(.+)\.(0|[1-9]\d{0,3})$/
// For a list whose length only the run knows, such as the tiles of a picture.
const MAX_CALLS = 1000
// Their output is the text that they were given.
const PRIMITIVES = new Set(['PrimitiveString', 'PrimitiveStringMultiline'])

export function createLeasedModels({ store, directory, turns }: LeasedModelsDeps): LeasedModels {
  const remembered = new BoundedMap<string, AllowedModels>(MAX_REMEMBERED)

  async function read(lease: Lease): Promise<AllowedModels> {
    const claim = await store.findClaim(lease.leaseId)
    if (claim?.job.id !== lease.jobId) throw new ServiceError('not_found', 'this lease holds no such job')
    const graph = await readStoredGraph(claim.workflow, turns)
    const bounds = { catalog: directory.catalog(claim.job.pool), files: claim.inputs.length, maxListLength: MAX_CALLS }
    const allowed = allowedModels(graph, createCallCounts(graph, bounds))
    remembered.set(nameOf(lease), allowed)
    return allowed
  }

  return {
    async mustName(lease, { model, key, input, images }) {
      const known = remembered.get(nameOf(lease)) ?? (await read(lease))
      const [, nodeId = '', index = ''] = CALL_KEY.exec(key) ?? []
      const allowed = known.get(nodeId)
      if (allowed?.models.has(model) !== true || Number(index) >= allowed.count) {
        throw new ServiceError('forbidden', 'the graph of this job names no such call of a model')
      }
      if (allowed.inputDigest !== null && allowed.inputDigest !== digest(input)) {
        throw new ServiceError('forbidden', 'the graph of this job calls this model with another input')
      }
      if (images.length > 0 && !allowed.hasImages) {
        throw new ServiceError('forbidden', 'the graph of this job gives this call no pictures')
      }
    },
  }
}

/** A lease may hold one job after another: when the answer to its claim was lost, the claim is made again. */
function nameOf({ jobId, leaseId }: Lease): string {
  return `${leaseId} ${jobId}`
}

function allowedModels(graph: Graph, callsOf: (nodeId: string) => number): AllowedModels {
  let texts: ReadonlySet<string> | null = null
  const nodes = findModelNodes(graph).map(({ nodeId }): [string, AllowedCalls] => {
    const { model, input, images } = graph.get(nodeId)?.inputs ?? {}
    const name = constantOf(graph, model)
    // A name that comes from another node is one of the texts that stand in the graph.
    if (name === undefined) texts ??= textsOf(graph)
    return [
      nodeId,
      {
        models: name === undefined ? (texts ?? new Set()) : new Set([String(name).trim()]),
        inputDigest: digestOf(constantOf(graph, input ?? '{}')),
        hasImages: images !== undefined,
        count: callsOf(nodeId),
      },
    ]
  })
  return new Map(nodes)
}

/** What a node is given for an input; undefined: the run makes it. */
function constantOf(graph: Graph, value: JsonValue | undefined): JsonValue | undefined {
  let found = value
  for (let steps = 0; found !== undefined && isLink(found); steps++) {
    const source = graph.get(found[0])
    if (source === undefined || !PRIMITIVES.has(source.classType) || steps === graph.size) return undefined
    found = source.inputs['value']
  }
  return found
}

/** A text that is no JSON fails its node before any call, so that no input is right. */
function digestOf(text: JsonValue | undefined): string | null {
  if (text === undefined) return null
  try {
    return digest(parseLosslessJson(String(text)))
  } catch {
    return ''
  }
}

function digest(input: JsonValue): string {
  return hash('sha256', stringifyLosslessJson(input), 'base64')
}

function textsOf(graph: Graph): ReadonlySet<string> {
  const texts = [...graph.values()].flatMap(({ inputs }) => Object.values(inputs))
  return new Set(texts.flatMap((value) => (typeof value === 'string' ? [value.trim()] : [])))
}

/** Partner models for nodes that run on joined workers: the call is made here, so that no provider's key leaves the service. */
interface NodeCall {
  readonly model: string
  /** JSON text: numbers of any length survive. */
  readonly input: string
  readonly images: readonly Uint8Array<ArrayBuffer>[]
  readonly key: string
}

export type RunNodeModel = (
  worker: WorkerIdentity,
  lease: Lease,
  call: NodeCall,
  options: { readonly signal: AbortSignal },
) => Promise<ModelAnswer>

export interface WorkerModelsDeps {
  readonly held: HeldClaims
  readonly models: LeasedModels
  readonly runModel: RunModel
  readonly extraData: Pick<ExtraDataKeeper, 'take'>
  readonly turns: Turns
}

export function createWorkerModels({ held, models, runModel, extraData, turns }: WorkerModelsDeps): RunNodeModel {
  return async function runNodeModel(worker, named, { model, input: inputText, images, key }, { signal }) {
    const lease = toLease(worker, named)
    const { job, needsExtraData, sealedExtraData, notes } = await held.mustFind(lease)
    const input = readInput(inputText)
    await models.mustName(lease, { model, key, input, images })
    const credentials = needsExtraData ? extraData.take(job.id, sealedExtraData) : null
    return runModel(
      {
        ...{ model, input, images, key, accountId: job.accountId, jobId: job.id },
        extraData: joinExtraData(notes === null ? null : await readStoredJson(notes, turns), credentials),
      },
      { signal },
    )
  }
}

function readInput(text: string): JsonValue {
  try {
    return parseLosslessJson(text)
  } catch {
    throw invalidField('input', 'must be JSON as a text')
  }
}

/**
 * What a server has to have loaded before it is given work: files of weights, or a whole workflow. Weights become graphs that do nothing
 * but load them, with the classes that the server itself has.
 */
import { type Graph, GraphError } from '../../../../engine/graph/graph.ts'
import { readGraph } from '../../../../engine/graph/graph-json.ts'
import type { InputSpec, NodeCatalog, NodeDefinition } from '../../../../engine/graph/node-catalog.ts'
import { isJsonObject, type JsonValue, parseLosslessJson } from '../../../../lib/json/lossless-json.ts'
import { invalidField } from '../../errors.ts'
import { findMissing } from '../../workflows/needs.ts'
import { installedWeights } from '../weights/weight-files.ts'

export interface WarmWish {
  /** Names, as workflows have them. */
  readonly weights: readonly string[]
  /** A graph, as JSON text; null: none. */
  readonly workflow: string | null
}

export interface WarmPlan extends WarmWish {
  /** Rises with every wish, so that the same wish twice is met twice. */
  readonly number: number
}

// Shows whatever it is given, so that a graph of loaders has an output.
const SHOW = { classType: 'PreviewAny', input: 'source' }

/** Throws invalid_field for what this server cannot load. */
export function toWarmGraphs({ weights, workflow }: WarmWish, catalog: NodeCatalog): Graph[] {
  const installed = installedWeights(catalog)
  const unknown = weights.find((name) => !installed.has(name))
  if (unknown !== undefined)
    throw invalidField('weights', `names ${JSON.stringify(unknown)}, which this server does not have`)
  const loaders = weights.map((name) => toLoader(name, catalog))
  return workflow === null ? loaders : [...loaders, readWorkflow(workflow, catalog)]
}

function toLoader(name: string, catalog: NodeCatalog): Graph {
  for (const classType of catalog.classTypes()) {
    const definition = catalog.find(classType)
    const inputs = definition === null ? null : toInputs(definition, name)
    if (definition === null || inputs === null) continue
    if (!definition.output_node && catalog.find(SHOW.classType) === null)
      throw invalidField('weights', `cannot be loaded alone by a server without ${SHOW.classType}; give a workflow`)
    const show = { class_type: SHOW.classType, inputs: { [SHOW.input]: ['1', 0] } }
    const loader = { class_type: classType, inputs }
    return readGraph(definition.output_node ? { 1: loader } : { 1: loader, 2: show })
  }
  throw invalidField(
    'weights',
    `names ${JSON.stringify(name)}, which no node of this server loads without others; give a workflow that uses it`,
  )
}

/** null: it does not load the file, or needs more than choices and plain values. */
function toInputs({ input: { required = {} } }: NodeDefinition, name: string): Record<string, JsonValue> | null {
  const entries = Object.entries(required)
  const own = entries.find(([, spec]) => choicesOf(spec)?.includes(name) === true)
  if (own === undefined) return null
  const inputs = entries.map(([input, spec]) => [input, input === own[0] ? name : usualOf(spec)] as const)
  if (inputs.some(([, value]) => value === undefined)) return null
  return Object.fromEntries(inputs) as Record<string, JsonValue>
}

function choicesOf([type, options]: InputSpec): readonly unknown[] | null {
  if (Array.isArray(type)) return type
  return Array.isArray(options?.['options']) ? options['options'] : null
}

function usualOf(spec: InputSpec): unknown {
  return spec[1]?.['default'] ?? choicesOf(spec)?.[0]
}

function readWorkflow(text: string, catalog: NodeCatalog): Graph {
  const graph = readWarmWorkflow(text)
  const { classes, weights } = findMissing(graph, catalog)
  const lack = classes[0]?.classType ?? weights[0]?.name
  if (lack !== undefined) throw invalidField('workflow', `needs ${lack}, which this server does not have`)
  const isOutput = (classType: string) => catalog.find(classType)?.output_node === true
  if ([...graph.values()].some(({ classType }) => isOutput(classType))) return graph
  throw invalidField('workflow', 'has no node that makes an output, so nothing of it would run')
}

function readWarmWorkflow(text: string): Graph {
  try {
    const value = parseLosslessJson(text)
    if (!isJsonObject(value)) throw invalidField('workflow', 'must be a graph in API format')
    return readGraph(value)
  } catch (error) {
    if (!(error instanceof GraphError)) throw error
    throw invalidField('workflow', `is no graph that can run: ${error.message}`)
  }
}

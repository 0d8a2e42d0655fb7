/** From whatever a caller calls a graph to one that this engine can run, with the files that it names. */
import { type JsonValue, parseLosslessJson, stringifyLosslessJson } from '../lib/json/lossless-json.ts'
import type { Turns } from '../lib/waiting/turns.ts'
import { findInputs, type GivenInputs, type InputSource } from './files/input-files.ts'
import { createFileCheck, findFileNames } from './graph/file-inputs.ts'
import type { Graph } from './graph/graph.ts'
import { GraphError } from './graph/graph-error.ts'
import type { NodeCatalog } from './graph/node-catalog.ts'
import { readGraphSteps } from './graph/read-graph.ts'
import { replaceClasses } from './graph/replace-classes.ts'
import { toGraphError } from './graph/validate/node-errors.ts'
import { validateSteps } from './graph/validate/validate.ts'
import { writeGraph, writeGraphSteps } from './graph/write-graph.ts'

/** A graph that was validated against the catalog of the engine: it is run as it is. */
export class CheckedGraph {
  readonly graph: Graph
  /** The same as JSON text. */
  readonly text: string

  constructor(graph: Graph, text: string = writeGraph(graph)) {
    this.graph = graph
    this.text = text
  }
}

/**
 * A graph in ComfyUI's API format: JSON text, the same as an object (node ids to `{ class_type, inputs }`), or a graph that was
 * read before. Only text keeps every digit of a number, such as a seed above 2^53 or the point of `1.0`.
 */
export type GraphSource = string | Graph | { readonly [nodeId: string]: unknown }

interface CheckOptions {
  readonly catalog: NodeCatalog
  readonly given: GivenInputs
  readonly turns: Turns
}

export interface ReadyGraph {
  readonly checked: CheckedGraph
  readonly inputs: ReadonlyMap<string, InputSource>
}

/** Throws GraphError. */
export async function checkGraph(source: GraphSource, { catalog, given, turns }: CheckOptions): Promise<ReadyGraph> {
  const read = isGraph(source) ? source : await turns.run(readGraphSteps(readJson(source)))
  const submitted = replaceClasses(read, catalog)
  const named = findFileNames(submitted, catalog)
  const { sources, folders } = await findInputs(named, given)
  const checkInput = createFileCheck(named, {
    hasFile: (name) => sources.has(name),
    hasFolder: (folder) => folders.has(folder),
  })
  const result = await turns.run(validateSteps(submitted, { catalog, checkInput }))
  const error = toGraphError(result)
  if (error !== null) throw error
  const text = await turns.run(writeGraphSteps(result.graph))
  return { checked: new CheckedGraph(result.graph, text), inputs: sources }
}

function isGraph(source: GraphSource): source is Graph {
  return source instanceof Map
}

function readJson(source: Exclude<GraphSource, Graph>): JsonValue {
  try {
    // An object goes through text as well, so that what is validated is what the threads are going to read.
    return parseLosslessJson(typeof source === 'string' ? source : toText(source as JsonValue))
  } catch (error) {
    throw new GraphError('malformed', `the graph is not valid JSON: ${(error as Error).message}`)
  }
}

function toText(value: JsonValue): string {
  const text: string | undefined = stringifyLosslessJson(value)
  return text ?? 'null'
}

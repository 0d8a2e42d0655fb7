/**
 * The graph as the server gets it: file names are replaced by those under which the files were uploaded, and everything is saved
 * into a folder of this attempt, which keeps files of different jobs apart even where several servers share a disk. Pure.
 */

import { posix } from 'node:path'
import { findFileInputs } from '../../../../../engine/graph/file-inputs.ts'
import type { Graph, GraphNode } from '../../../../../engine/graph/graph.ts'
import type { NodeCatalog } from '../../../../../engine/graph/node-catalog.ts'
import { type JsonObject, type JsonValue, NumberText } from '../../../../../lib/json/lossless-json.ts'

interface Rewriting {
  readonly catalog: NodeCatalog
  /** Names on the server by the names in the graph. */
  readonly staged: ReadonlyMap<string, string>
  /** Where the attempt's files go, within the server's output folder. */
  readonly folder: string
  readonly fresh: FreshOutputs | null
}

/** Output nodes to run although they are cached: an input that no node declares changes the cache key, and nothing else. */
export interface FreshOutputs {
  /** A text that was never used before. */
  readonly token: string
  /** null: all of them. */
  readonly nodeIds: ReadonlySet<string> | null
}

const PREFIX_INPUT = 'filename_prefix'
/** The input that makes a cached output node run. */
export const CACHE_BREAKER_INPUT = 'atelier_run'
// The names that asset references were resolved to; they may be anywhere in a graph.
const CONTENT_NAME = /^[0-9a-f]{64}\.\w{1,16}$/

export function rewriteGraph(graph: Graph, rewriting: Rewriting): Graph {
  const result = new Map<string, GraphNode>()
  for (const [id, node] of graph) result.set(id, rewriteNode(id, node, rewriting))
  return result
}

/** Which of the named files have to be uploaded; weights are not among them: the server has its own folders for those. */
export function namesToUpload(graph: Graph, catalog: NodeCatalog, names: ReadonlySet<string>): ReadonlySet<string> {
  const wanted = new Set([...names].filter((name) => CONTENT_NAME.test(name)))
  for (const { classType, inputs } of graph.values()) {
    for (const { path } of findFileInputs(catalog, classType, inputs)) {
      const value = Object.hasOwn(inputs, path) ? inputs[path] : null
      if (typeof value === 'string' && names.has(value)) wanted.add(value)
    }
  }
  return wanted
}

function rewriteNode(id: string, node: GraphNode, { catalog, staged, folder, fresh }: Rewriting): GraphNode {
  const isOutput = catalog.find(node.classType)?.output_node === true
  const fileInputs = new Set(findFileInputs(catalog, node.classType, node.inputs).map(({ path }) => path))
  const inputs: [string, JsonValue][] = Object.entries(node.inputs).map(([name, value]) => {
    if (isOutput && name === PREFIX_INPUT && typeof value === 'string') return [name, intoFolder(value, folder)]
    return [
      name,
      replaceNames(value, (text) => (fileInputs.has(name) || CONTENT_NAME.test(text) ? staged.get(text) : undefined)),
    ]
  })
  const isFresh = isOutput && fresh !== null && (fresh.nodeIds?.has(id) ?? true)
  if (isFresh) inputs.push([CACHE_BREAKER_INPUT, fresh.token])
  return { ...node, inputs: Object.fromEntries(inputs) as JsonObject }
}

function replaceNames(value: JsonValue, stagedName: (text: string) => string | undefined): JsonValue {
  if (typeof value === 'string') return stagedName(value) ?? value
  if (typeof value !== 'object' || value === null || value instanceof NumberText) return value
  if (Array.isArray(value)) return value.map((item) => replaceNames(item, stagedName))
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, replaceNames(item, stagedName)]))
}

/**
 * Names that no folder can be put before, and what stands for them on the server. Left alone, they would be saved in the folder of
 * all runs, where ComfyUI gives every file of such a name the number 1.
 */
const STAND_INS: Readonly<Record<string, string>> = { '.': '.atelier-1', '..': '.atelier-2' }
const NAMES = new Map(Object.entries(STAND_INS).map(([name, standIn]) => [standIn, name]))

/** The name that the caller gave, of one on the server. */
export function toGivenName(name: string): string {
  return NAMES.get(name) ?? name
}

/** A prefix that leads out of the folder stays as it is, so that the server refuses it. */
function intoFolder(prefix: string, folder: string): string {
  const path = posix.normalize(prefix.replaceAll('\\', '/')).replace(/(.)\/$/, '$1')
  if (STAND_INS[path] !== undefined) return `${folder}/${STAND_INS[path]}`
  if (path.startsWith('../') || path.startsWith('/') || /^[A-Za-z]:/.test(path)) return prefix
  // Where nothing leads upwards, the server reads the prefix as its caller wrote it.
  return `${folder}/${prefix.includes('..') ? path : prefix}`
}

/** The way back: a text of the server with the names of the submitted graph. */
export function createRestore({ staged, folder }: Pick<Rewriting, 'staged' | 'folder'>): (text: string) => string {
  const names = [...staged].map(([name, stagedName]) => [stagedName, name] as const)
  return (text) =>
    names.reduce((result, [stagedName, name]) => result.replaceAll(stagedName, name), text.replaceAll(`${folder}/`, ''))
}

/** The subfolder of a file as the user sees it. */
export function withoutFolder(subfolder: string, folder: string): string {
  const path = subfolder.replaceAll('\\', '/')
  if (path === folder) return ''
  return path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path
}

/** How many nodes the outputs depend on, themselves included: these are the ones that run. */
export function countReachable(graph: Graph, catalog: NodeCatalog): number {
  const reached = new Set<string>()
  const open = [...graph].filter(([, node]) => catalog.find(node.classType)?.output_node === true).map(([id]) => id)
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    const node = graph.get(id)
    if (node === undefined || reached.has(id)) continue
    reached.add(id)
    for (const value of Object.values(node.inputs)) {
      if (Array.isArray(value) && value.length === 2 && typeof value[0] === 'string') open.push(value[0])
    }
  }
  return reached.size
}

/**
 * Finds the inputs of a graph that name files of the caller, lists those files, and checks that they exist. A node declares such
 * an input with an upload option; the catalog names the few inputs that take a file without one.
 */

import type { JsonObject } from '../../lib/json/lossless-json.ts'
import { pythonStr } from '../../lib/python/values.ts'
import type { Graph } from './graph.ts'
import { type DeclaredInput, declaredInputs, type NodeSpec, readNodeSpec } from './input-specs.ts'
import type { NodeCatalog } from './node-catalog.ts'
import { type CheckInput, unwrapConstant } from './validate/check-node.ts'

interface FileInput {
  readonly path: string
  /** The word in "Invalid image file: x". */
  readonly noun: string
  /** Whether an empty text is allowed and means no file. Only free text inputs allow it; a choice always names a file. */
  readonly mayBeEmpty: boolean
}

function toFileInput(input: DeclaredInput, named: readonly string[]): FileInput | null {
  const noun = input.upload ?? (named.includes(input.path) ? input.name : null)
  return noun === null ? null : { path: input.path, noun, mayBeEmpty: input.type === 'STRING' }
}

const NONE: readonly FileInput[] = []
const known = new WeakMap<NodeSpec, readonly FileInput[]>()

/** The file inputs of a node of this class; `given` matters only for classes with dynamic inputs. */
export function findFileInputs(catalog: NodeCatalog, classType: string, given: JsonObject): readonly FileInput[] {
  const definition = catalog.find(classType)
  if (definition === null) return NONE
  const spec = readNodeSpec(definition)
  let inputs = known.get(spec)
  if (inputs === undefined || spec.isDynamic) {
    const named = catalog.fileInputs?.(classType) ?? catalog.selfCheckedInputs(classType)
    inputs = declaredInputs(spec, given)
      .map((input) => toFileInput(input, named))
      .filter((input) => input !== null)
    known.set(spec, inputs)
  }
  return inputs
}

export interface FileNames {
  /** The distinct file names, as they are written in the graph. */
  readonly names: ReadonlySet<string>
  /** Distinct folders whose files belong to the graph. */
  readonly folders: ReadonlySet<string>
  /** The file inputs of the graph by class and path. */
  readonly inputs: ReadonlyMap<string, FileInput>
  /** The folder inputs, by the same key. */
  readonly folderInputs: ReadonlySet<string>
}

function inputKey(classType: string, path: string): string {
  return `${classType}\0${path}`
}

export function findFileNames(graph: Graph, catalog: NodeCatalog): FileNames {
  const names = new Set<string>()
  const folders = new Set<string>()
  const inputs = new Map<string, FileInput>()
  const folderInputs = new Set<string>()
  for (const node of graph.values()) {
    for (const path of catalog.folderInputs?.(node.classType) ?? []) {
      folderInputs.add(inputKey(node.classType, path))
      const value = Object.hasOwn(node.inputs, path) ? unwrapConstant(node.inputs[path]) : null
      if (typeof value === 'string' && value !== '') folders.add(value)
    }
    for (const input of findFileInputs(catalog, node.classType, node.inputs)) {
      inputs.set(inputKey(node.classType, input.path), input)
      if (!Object.hasOwn(node.inputs, input.path)) continue
      const value = unwrapConstant(node.inputs[input.path])
      if (typeof value === 'string' && value !== '') names.add(value)
    }
  }
  return { names, folders, inputs, folderInputs }
}

interface KnownFiles {
  hasFile(name: string): boolean
  hasFolder(folder: string): boolean
}

/** The check of the nodes that load files: a file that the caller does not have is invalid. */
export function createFileCheck({ inputs, folderInputs }: FileNames, known: KnownFiles): CheckInput {
  return (classType, path, value) => {
    if (folderInputs.has(inputKey(classType, path))) {
      return typeof value === 'string' && known.hasFolder(value) ? true : `No files in the folder: ${pythonStr(value)}`
    }
    const input = inputs.get(inputKey(classType, path))
    if (input === undefined || (value === '' && input.mayBeEmpty)) return true
    return typeof value === 'string' && known.hasFile(value) ? true : `Invalid ${input.noun} file: ${pythonStr(value)}`
  }
}

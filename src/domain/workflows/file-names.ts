/**
 * Names of files in a graph: what an asset is called there, which bare names a graph holds, and under which paths a bare name
 * may be found. Names are only ever compared, never used as paths.
 */

import type { Graph } from '../../../engine/graph/graph.ts'
import type { NodeCatalog } from '../../../engine/graph/node-catalog.ts'
import type { CheckInput } from '../../../engine/graph/validate/check-node.ts'
import { unwrapConstant } from '../../../engine/graph/validate/convert-constant.ts'
import { extensionFromType, extensionOf } from '../../../lib/mime.ts'
import { pythonStr } from '../../../lib/python/values.ts'
import type { Asset } from '../assets/asset.ts'
import type { AssetOrigin } from '../assets/asset-store.ts'
import { type FileInput, findFileInputs } from '../../../engine/graph/file-inputs.ts'

const ANNOTATION = / \[(input|output|temp)\]$/
const CONTENT_NAME = /^([0-9a-f]{64})\.\w{1,16}$/i
const MODEL_PATH = /^models\/[^/]+\/(.+)$/
// Nobody means a file of ours by these.
const LEADS_ELSEWHERE = /^\/|\\|(^|\/)\.\.(\/|$)/
// Longer than any path that an asset can have: such a name is unknown without a look-up.
const MAX_NAME_LENGTH = 1_024

/** The name under which an asset stands in an executed graph: by content, or relative to its root for weights. */
export function nameInGraph(asset: Asset): string {
  const model = asset.filePath === null ? null : MODEL_PATH.exec(asset.filePath)
  if (model !== null) return model[1]
  const extension =
    (asset.filePath === null ? null : extensionOf(asset.filePath)) ?? extensionFromType(asset.contentType)
  return `${asset.hash}.${extension ?? 'bin'}`
}

/**
 * What a bare name asks for. `x.png` and `x.png [input]` mean an upload, `x.png [output]` and `x.png [temp]` something that a
 * job has made; neither ever stands in for the other.
 */
export function originOfName(name: string): AssetOrigin {
  const folder = ANNOTATION.exec(name)?.[1] ?? 'input'
  return folder === 'input' ? 'upload' : 'output'
}

/** The file paths that a bare name may mean: its folder may be written or left out. */
export function pathsOfName(name: string): readonly string[] {
  const path = name.replace(ANNOTATION, '')
  if (path === '' || path.length > MAX_NAME_LENGTH) return []
  const folder = `${ANNOTATION.exec(name)?.[1] ?? 'input'}/`
  return [path, path.startsWith(folder) ? path.slice(folder.length) : folder + path]
}

/** The folders that a bare folder name may mean, as `pathsOfName` for files. */
export function pathsOfFolder(folder: string): readonly string[] {
  return pathsOfName(folder.replace(/\/+$/, ''))
}

/**
 * Where else a bare name may be found when nothing stands under it: without its folders, since names are flat for callers who
 * think in subfolders, and among uploads that were put into the folder of outputs or previews by name.
 */
export function fallbacksOfName(name: string): readonly { readonly origin: AssetOrigin; readonly path: string }[] {
  const path = name.replace(ANNOTATION, '')
  if (path === '' || path.length > MAX_NAME_LENGTH || LEADS_ELSEWHERE.test(path)) return []
  const folder = ANNOTATION.exec(name)?.[1] ?? 'input'
  const base = path.slice(path.lastIndexOf('/') + 1)
  const flat = base === path || base === '' ? [] : [base, `${folder}/${base}`]
  const found = flat.map((one) => ({ origin: originOfName(name), path: one }))
  if (folder === 'input') return found
  return [...found, ...[path, base].map((one) => ({ origin: 'upload' as const, path: `${folder}/${one}` }))]
}

/** The hash that a content-addressed name carries, or null. */
export function hashOfName(name: string): string | null {
  return CONTENT_NAME.exec(name.replace(ANNOTATION, ''))?.[1].toLowerCase() ?? null
}

export interface FileNames {
  /** Distinct bare names, as they are written. */
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

export interface KnownFiles {
  hasFile(name: string): boolean
  hasFolder(folder: string): boolean
}

/** The word of the file-loading nodes: a file that the caller does not have is invalid. */
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

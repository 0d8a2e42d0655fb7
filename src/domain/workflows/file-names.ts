import { extensionFromType, extensionOf } from '../../../lib/files/mime.ts'
import type { Asset } from '../assets/asset.ts'
import type { AssetOrigin } from '../assets/asset-store.ts'

const ANNOTATION = / \[(input|output|temp)\]$/
const CONTENT_NAME = /^([0-9a-f]{64})\.\w{1,16}$/i
const MODEL_PATH = /^models\/[^/]+\/(.+)$/
// Such a path cannot mean a file of the caller's.
const LEADS_ELSEWHERE = /^\/|\\|(^|\/)\.\.(\/|$)/
// Longer than any path that an asset can have: such a name is unknown without a look-up.
const MAX_NAME_LENGTH = 1_024

/** The name of an asset in an executed graph: by content, or relative to its root for weights. */
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
 * Where else a bare name may be found when no file has it: without its folders, since names are flat for callers who
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

/**
 * Finds the assets that a workflow names, with one store look-up for all ids, one for all hashes and one for all paths of
 * either origin, always within one account. An unknown reference refuses the workflow; an unknown bare name does not: the
 * node that loads it says so.
 */
import { findFileInputs } from '../../../engine/graph/file-inputs.ts'
import type { Graph, GraphNode } from '../../../engine/graph/graph.ts'
import type { NodeCatalog } from '../../../engine/graph/node-catalog.ts'
import { extensionFromType, extensionOf } from '../../../lib/files/mime.ts'
import { isUuid } from '../../../lib/ids.ts'
import { isJsonObject, type JsonObject, type JsonValue, NumberText } from '../../../lib/json/lossless-json.ts'
import type { Asset } from '../assets/asset.ts'
import type { AssetOrigin, AssetStore } from '../assets/asset-store.ts'
import type { MediaKind } from '../assets/given-files.ts'
import { ServiceError } from '../errors.ts'

export type AssetFinder = Pick<AssetStore, 'findMany' | 'findNewestByPath' | 'findNewestByHash' | 'findInFolders'>

interface FileQuery {
  readonly accountId: string
  readonly refs: Iterable<AssetRef>
  readonly names: ReadonlySet<string>
  readonly folders: ReadonlySet<string>
  readonly now: Date
  /** A name that is unknown may mean the file that has its last part as a name. */
  readonly hasFlatNames?: boolean
}

export interface ResolvedFiles {
  assetOf(ref: AssetRef): Asset
  readonly byName: ReadonlyMap<string, Asset>
  /** By folder as it is written, then by the file's own name. */
  readonly byFolder: ReadonlyMap<string, ReadonlyMap<string, Asset>>
}

type ByFolder = ResolvedFiles['byFolder']

// Where ComfyUI's editor puts masks. It uploads them by the Legacy v1 API, which keeps no folders, and names them so in graphs.
const CLIPSPACE = 'clipspace/'
// More files than any real graph loads; bounds the size of the look-ups.
const MAX_FILES = 1_000
const SHOWN_ID_LENGTH = 200

export async function resolveFiles(assets: AssetFinder, query: FileQuery): Promise<ResolvedFiles> {
  const { accountId, names, now } = query
  const refs = [...query.refs]
  refuseTooMany(refs.length + names.size)
  // Only canonical ids can exist, so no others reach the store.
  const ids = unique(refs.flatMap((ref) => (ref.kind === 'id' && isUuid(ref.given) ? [ref.given] : [])))
  const hashes = unique([
    ...refs.flatMap((ref) => (ref.kind === 'hash' ? [ref.hash] : [])),
    ...[...names].flatMap((name) => hashOfName(name) ?? []),
  ])
  const [foundIds, uploads, outputs, foundHashes, inFolders] = await Promise.all([
    ids.length === 0 ? [] : assets.findMany(accountId, ids, now),
    findByPath(assets, 'upload', query),
    findByPath(assets, 'output', query),
    hashes.length === 0 ? [] : assets.findNewestByHash(accountId, hashes, now),
    findInFolders(assets, query),
  ])
  const byId = new Map(foundIds.map((asset) => [asset.id, asset]))
  const byHash = new Map(foundHashes.map((asset) => [asset.hash, asset]))
  const find = (ref: AssetRef): Asset | undefined => {
    if (ref.kind === 'id') return byId.get(ref.given)
    return ref.kind === 'hash' ? byHash.get(ref.hash) : undefined
  }
  refuseMissing(refs.filter((ref) => find(ref) === undefined))
  const byName = resolveNames(names, { upload: uploads, output: outputs }, byHash)
  const isFlat = (name: string) => query.hasFlatNames === true || name.startsWith(CLIPSPACE)
  const missing = [...names].filter((name) => !byName.has(name) && isFlat(name))
  const others = missing.length === 0 ? byName : await findElsewhere(assets, query, missing)
  return { assetOf: (ref) => find(ref) as Asset, byName: new Map([...byName, ...others]), byFolder: inFolders }
}

/** Finds files for names that no file has exactly, in the order of their fallbacks. */
async function findElsewhere(
  assets: AssetFinder,
  query: FileQuery,
  names: readonly string[],
): Promise<Map<string, Asset>> {
  const wanted = new Map(names.map((name) => [name, fallbacksOfName(name)]))
  const found = await Promise.all(
    (['upload', 'output'] as const).map(async (origin) => {
      const paths = unique([...wanted.values()].flat().flatMap((one) => (one.origin === origin ? [one.path] : [])))
      if (paths.length === 0) return []
      const records = await assets.findNewestByPath(query.accountId, { filePaths: paths, origin, now: query.now })
      return records.map((asset): [string, Asset] => [`${origin} ${asset.filePath}`, asset])
    }),
  )
  const byPath = new Map(found.flat())
  const resolved = new Map<string, Asset>()
  for (const [name, fallbacks] of wanted) {
    const hit = fallbacks.find(({ origin, path }) => byPath.has(`${origin} ${path}`))
    const asset = hit === undefined ? undefined : byPath.get(`${hit.origin} ${hit.path}`)
    if (asset !== undefined) resolved.set(name, asset)
  }
  return resolved
}

async function findByPath(assets: AssetFinder, origin: AssetOrigin, query: FileQuery): Promise<readonly Asset[]> {
  const filePaths = unique([...query.names].filter((name) => originOfName(name) === origin).flatMap(pathsOfName))
  return filePaths.length === 0 ? [] : assets.findNewestByPath(query.accountId, { filePaths, origin, now: query.now })
}

async function findInFolders(assets: AssetFinder, { accountId, folders, now }: FileQuery): Promise<ByFolder> {
  const byFolder = new Map<string, Map<string, Asset>>()
  for (const folder of folders) {
    const paths = pathsOfFolder(folder)
    // One more than allowed tells a full folder from one that is too large.
    const found = await assets.findInFolders(accountId, { folders: paths, limit: MAX_FILES + 1, now })
    refuseTooMany(found.length)
    // The newest comes first, whichever of the spellings it was stored under.
    const files = new Map<string, Asset>()
    for (const asset of found) {
      const name = asset.filePath?.slice(asset.filePath.lastIndexOf('/') + 1) ?? ''
      if (!files.has(name)) files.set(name, asset)
    }
    if (files.size > 0) byFolder.set(folder, files)
  }
  return byFolder
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)]
}

function refuseTooMany(count: number): void {
  if (count <= MAX_FILES) return
  throw new ServiceError('invalid_workflow', `workflow names ${count} files; at most ${MAX_FILES} are allowed`, {
    details: { node_errors: {} },
  })
}

function refuseMissing(missing: readonly AssetRef[]): void {
  if (missing.length === 0) return
  const ids = unique(missing.flatMap((ref) => (ref.kind === 'malformed' ? [] : [ref.given.slice(0, SHOWN_ID_LENGTH)])))
  const malformed = missing.find((ref) => ref.kind === 'malformed')
  const unknown =
    ids.length === 0
      ? []
      : [
          `the workflow refers to assets that do not exist: ${ids.slice(0, 5).join(', ')}${ids.length > 5 ? ', ...' : ''}`,
        ]
  const problems = malformed?.kind === 'malformed' ? [malformed.problem.slice(0, 500)] : []
  throw new ServiceError('missing_asset', [...unknown, ...problems].join('; '), { details: { missingIds: ids } })
}

function resolveNames(
  names: ReadonlySet<string>,
  found: Readonly<Record<AssetOrigin, readonly Asset[]>>,
  byHash: ReadonlyMap<string, Asset>,
): ReadonlyMap<string, Asset> {
  const resolved = new Map<string, Asset>()
  for (const name of names) {
    const paths = pathsOfName(name)
    // The newest comes first, whichever of the spellings it was stored under.
    const newest = found[originOfName(name)].find(({ filePath }) => filePath !== null && paths.includes(filePath))
    const asset = newest ?? byHash.get(hashOfName(name) ?? '')
    if (asset !== undefined) resolved.set(name, asset)
  }
  return resolved
}

const REFERENCE_TYPE = 'core/ASSET'
const HASH = /^(?:blake3:)?([0-9a-f]{64})$/i

export type AssetRef =
  | { readonly kind: 'id'; readonly given: string }
  /** `hash` is plain lower-case hex, `given` as it was written. */
  | { readonly kind: 'hash'; readonly given: string; readonly hash: string }
  /** A file that is not here yet. */
  | { readonly kind: 'url'; readonly given: string }
  | { readonly kind: 'malformed'; readonly problem: string }

/** A file by its address. */
export interface UrlRef {
  readonly ref: AssetRef
  readonly url: string
  readonly nodeId: string
  readonly input: string
  readonly kind: MediaKind
}

export interface FoundRefs {
  /** By the very object in the graph, so that replacing needs no second reading. */
  readonly refs: ReadonlyMap<JsonObject, AssetRef>
  /** Those that are addresses, and where each stands. */
  readonly urls: readonly UrlRef[]
  readonly nodeIds: ReadonlySet<string>
}

function isReference(value: JsonObject): boolean {
  return Object.hasOwn(value, '__type') && value.__type === REFERENCE_TYPE
}

/** What names an asset in a graph, whichever graph it is. */
export function toReference({ id, hash }: Pick<Asset, 'id' | 'hash'>): JsonObject {
  return { __type: REFERENCE_TYPE, info: { id, hash: `blake3:${hash}` } }
}

/** null: the object is no reference. */
export function readReference(value: JsonObject): AssetRef | null {
  return isReference(value) ? readAssetRef(value) : null
}

function readAssetRef(value: JsonObject): AssetRef {
  const info = Object.hasOwn(value, 'info') ? value.info : null
  if (!isJsonObject(info)) return { kind: 'malformed', problem: 'has no `info` object' }
  const { id, hash, url } = info
  if (typeof id === 'string' && id !== '') return { kind: 'id', given: id }
  if (id !== undefined && id !== null) return { kind: 'malformed', problem: 'has an `info.id` that is no asset id' }
  if (typeof url === 'string' && url !== '' && hash == null) return { kind: 'url', given: url }
  const hex = typeof hash === 'string' ? HASH.exec(hash) : null
  if (hex === null) return { kind: 'malformed', problem: 'has neither `info.id` nor a valid `info.hash`' }
  return { kind: 'hash', given: hash as string, hash: hex[1].toLowerCase() }
}

/**
 * References to assets inside a workflow: `{"__type": "core/ASSET", "info": {"id", "hash"?, "file_path"?}}`, at any depth. The
 * id is authoritative; a hash counts only when there is no id, and a `url` when there is neither; the path is a hint for people. An
 * input that takes a file may also be just `{"url": …}`. Finding and replacing are pure. Depth is bounded by readGraph, so
 * recursion is safe.
 */
export function findAssetRefs(graph: Graph, catalog: NodeCatalog): FoundRefs {
  const refs = new Map<JsonObject, AssetRef>()
  const nodeIds = new Set<string>()
  const urls: UrlRef[] = []
  for (const [nodeId, node] of graph) {
    const before = refs.size
    const nounOf = (path: string) =>
      findFileInputs(catalog, node.classType, node.inputs).find((input) => input.path === path)?.noun ?? null
    for (const input in node.inputs) {
      const value = node.inputs[input]
      const add = (found: JsonObject, ref: AssetRef) => {
        refs.set(found, ref)
        if (ref.kind === 'url') urls.push({ ref, url: ref.given, nodeId, input, kind: toKind(nounOf(input)) })
      }
      const bare = readBareUrl(value)
      if (bare === null) collect(value, { id: nodeId, name: input }, add)
      else if (nounOf(input) !== null) add(value as JsonObject, { kind: 'url', given: bare })
    }
    if (refs.size > before) nodeIds.add(nodeId)
  }
  return { refs, nodeIds, urls }
}

/** Of an input that takes a file; null: it is no address. */
export function readBareUrl(value: JsonValue): string | null {
  if (!isJsonObject(value) || !Object.hasOwn(value, 'url') || Object.keys(value).length !== 1) return null
  return typeof value['url'] === 'string' ? value['url'] : null
}

/** What an input that loads a file calls it. */
function toKind(noun: string | null): MediaKind {
  return noun === 'image' || noun === 'video' || noun === 'audio' ? noun : 'file'
}

interface InputName {
  readonly id: string
  readonly name: string
}

function collect(value: JsonValue, input: InputName, add: (found: JsonObject, ref: AssetRef) => void): void {
  if (typeof value !== 'object' || value === null || value instanceof NumberText) return
  if (Array.isArray(value)) {
    for (const item of value) collect(item, input, add)
  } else if (isReference(value)) {
    const ref = readAssetRef(value)
    const where = `Node ${input.id}, input ${input.name}`
    add(value, ref.kind === 'malformed' ? { ...ref, problem: `${where}: the reference ${ref.problem}` } : ref)
  } else {
    for (const name in value) collect(value[name], input, add)
  }
}

/** The graph with every reference replaced by its name. Nodes without references are kept as they are. */
export function replaceAssetRefs(graph: Graph, found: FoundRefs, nameOf: (ref: AssetRef) => string): Graph {
  if (found.refs.size === 0) return graph
  const replace = (value: JsonValue): JsonValue => {
    if (typeof value !== 'object' || value === null || value instanceof NumberText) return value
    if (Array.isArray(value)) return value.map(replace)
    const ref = found.refs.get(value)
    return ref === undefined ? replaceMembers(value) : nameOf(ref)
  }
  // fromEntries and not assignment: a member may be called `__proto__`.
  const replaceMembers = (value: JsonObject): JsonObject =>
    Object.fromEntries(Object.entries(value).map(([name, item]) => [name, replace(item)]))
  const result = new Map<string, GraphNode>(graph)
  for (const id of found.nodeIds) {
    const node = graph.get(id)
    if (node !== undefined) result.set(id, { ...node, inputs: replaceMembers(node.inputs) })
  }
  return result
}

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
function originOfName(name: string): AssetOrigin {
  const folder = ANNOTATION.exec(name)?.[1] ?? 'input'
  return folder === 'input' ? 'upload' : 'output'
}

/** The file paths that a bare name may mean: its folder may be written or left out. */
function pathsOfName(name: string): readonly string[] {
  const path = name.replace(ANNOTATION, '')
  if (path === '' || path.length > MAX_NAME_LENGTH) return []
  const folder = `${ANNOTATION.exec(name)?.[1] ?? 'input'}/`
  return [path, path.startsWith(folder) ? path.slice(folder.length) : folder + path]
}

/** The folders that a bare folder name may mean, as `pathsOfName` for files. */
function pathsOfFolder(folder: string): readonly string[] {
  return pathsOfName(folder.replace(/\/+$/, ''))
}

/**
 * Where else a bare name may be found when no file has it: without its folders, since names are flat for callers who
 * think in subfolders, and among uploads that were put into the folder of outputs or previews by name.
 */
function fallbacksOfName(name: string): readonly { readonly origin: AssetOrigin; readonly path: string }[] {
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
function hashOfName(name: string): string | null {
  return CONTENT_NAME.exec(name.replace(ANNOTATION, ''))?.[1].toLowerCase() ?? null
}

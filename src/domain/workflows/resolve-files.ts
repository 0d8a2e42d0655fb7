/**
 * Finds the assets that a workflow names, with one store look-up for all ids, one for all hashes and one for all paths of
 * either origin, always within one account. An unknown reference refuses the workflow; an unknown bare name does not: the
 * node that loads it says so.
 */
import { isUuid } from '../../../lib/ids.ts'
import type { Asset } from '../assets/asset.ts'
import type { AssetOrigin, AssetStore } from '../assets/asset-store.ts'
import { ServiceError } from '../errors.ts'
import type { AssetRef } from './asset-refs.ts'
import { fallbacksOfName, hashOfName, originOfName, pathsOfFolder, pathsOfName } from './file-names.ts'

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

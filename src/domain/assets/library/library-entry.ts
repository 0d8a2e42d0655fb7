/**
 * A file as the library shows it: what it is, and what its owner says of it. Some tags say where a file is kept (`input`, `models` and
 * its folder); nobody chooses those by hand, so a list by them never lacks a file or shows one that is elsewhere.
 */
import { extensionFromType } from '../../../../lib/files/mime.ts'
import { uuidFromText } from '../../../../lib/ids.ts'
import { invalidField } from '../../errors.ts'
import { readTags } from '../create/asset-fields.ts'
import { MODEL_ROOTS } from '../create/file-path.ts'
import type { LibraryShelf, NotedAsset } from './library-store.ts'

export interface LibraryEntry {
  readonly id: string
  /** Plain lower-case hex; null: not known, as of weights that only an engine has. */
  readonly hash: string | null
  readonly sizeBytes: number | null
  readonly contentType: string
  readonly filePath: string | null
  readonly jobId: string | null
  readonly createdAt: Date
  readonly changedAt: Date
  readonly name: string
  /** Those of its place, then its owner's. */
  readonly tags: readonly string[]
  readonly ownTags: readonly string[]
  /** What a node takes to load it; null: no node can. */
  readonly loaderPath: string | null
  /** A JSON object as text. */
  readonly metadata: string | null
  readonly previewId: string | null
  /** Weights of engines: the operator's, and the same for everybody. */
  readonly isInstalled: boolean
}

/** A file of weights that some engine lists. */
export interface InstalledWeights {
  readonly folder: string
  readonly name: string
  readonly sizeBytes: number | null
}

const MODEL_TYPE = 'model_type:'
const FOLDERS = ['input', 'output', 'temp'] as const
const WEIGHTS_TYPE = 'application/octet-stream'

/** Tags that say where a file is kept. */
function isPlaceTag(tag: string): boolean {
  return tag === 'models' || tag.startsWith(MODEL_TYPE) || FOLDERS.some((folder) => folder === tag)
}

export function toEntry(asset: NotedAsset): LibraryEntry {
  const { id, hash, sizeBytes, filePath, jobId, createdAt, note } = asset
  const contentType = note?.contentType ?? asset.contentType
  const place = placeOf(asset)
  // An upload of the Jobs API may have any tags.
  const ownTags = (note?.tags ?? asset.tags).filter((tag) => !place.tags.includes(tag) && !isPlaceTag(tag))
  return {
    ...{ id, hash, sizeBytes, contentType, filePath, jobId, createdAt, ownTags },
    changedAt: note === null ? createdAt : new Date(note.changedAt),
    name: note?.name ?? place.name ?? `${id}.${extensionFromType(contentType) ?? 'bin'}`,
    tags: [...place.tags, ...ownTags],
    loaderPath: place.loaderPath,
    metadata: note?.metadata ?? null,
    previewId: note?.previewId ?? null,
    isInstalled: false,
  }
}

// Nobody knows since when an engine has a file; it is behind all that has a time.
const UNKNOWN_TIME = new Date(0)

/** The id is the same in every process and after every start. */
export function toInstalledEntry({ folder, name, sizeBytes }: InstalledWeights): LibraryEntry {
  return {
    ...{ id: uuidFromText(`weights ${folder}/${name}`), hash: null, sizeBytes, contentType: WEIGHTS_TYPE },
    ...{ filePath: `models/${folder}/${name}`, jobId: null, createdAt: UNKNOWN_TIME, changedAt: UNKNOWN_TIME },
    ...{ name: name.slice(name.lastIndexOf('/') + 1), tags: modelTags(folder), ownTags: [], loaderPath: name },
    ...{ metadata: null, previewId: null, isInstalled: true },
  }
}

interface Place {
  readonly tags: readonly string[]
  /** null: it has no name of its own. */
  readonly name: string | null
  readonly loaderPath: string | null
}

function placeOf({ filePath, jobId }: Pick<NotedAsset, 'filePath' | 'jobId'>): Place {
  if (filePath === null) return { tags: [], name: null, loaderPath: null }
  const name = filePath.slice(filePath.lastIndexOf('/') + 1)
  const [root = '', folder = '', ...rest] = filePath.split('/')
  if (jobId === null && root === 'models')
    return { tags: modelTags(folder), name, loaderPath: rest.length === 0 ? null : rest.join('/') }
  if (root === 'temp' || (root === 'output' && jobId === null))
    return { tags: [root], name, loaderPath: `${name} [${root}]` }
  return jobId === null
    ? { tags: ['input'], name, loaderPath: root === 'input' ? filePath.slice('input/'.length) : filePath }
    : { tags: ['output'], name, loaderPath: `${filePath} [output]` }
}

function modelTags(folder: string): readonly string[] {
  return folder === '' ? ['models'] : ['models', folder, `${MODEL_TYPE}${folder}`]
}

/** Which shelves can hold a file with all of these tags. */
export function shelvesOf(tags: readonly string[]): readonly LibraryShelf[] {
  if (tags.some((tag) => tag === 'models' || tag.startsWith(MODEL_TYPE))) return ['models']
  if (tags.includes('input')) return ['uploads']
  if (tags.includes('output') || tags.includes('temp')) return ['uploads', 'outputs']
  return ['models', 'uploads', 'outputs']
}

/** Where a new file goes, and what of its tags is its owner's. Throws `invalid_field`. */
export function readPlace(
  tags: readonly string[],
  name: string,
): { filePath: string | null; ownTags: readonly string[] } {
  const all = readTags(tags)
  if (all.includes('models') || all.some((tag) => tag.startsWith(MODEL_TYPE))) {
    const folder = readModelFolder(tags)
    const ownTags = all.filter((tag) => !isPlaceTag(tag) && tag !== folder)
    return { filePath: `models/${folder}/${name}`, ownTags }
  }
  const ownTags = all.filter((tag) => !isPlaceTag(tag))
  const folder = FOLDERS.find((each) => all.includes(each))
  if (folder === undefined) return { filePath: null, ownTags }
  return { filePath: folder === 'input' ? name : `${folder}/${name}`, ownTags }
}

/** In the order in which they were sent: `["models", "loras"]`, `["models", "model_type:loras"]`. */
function readModelFolder(tags: readonly string[]): string {
  const told = tags.find((tag) => tag.startsWith(MODEL_TYPE))?.slice(MODEL_TYPE.length)
  const folder = told ?? tags.find((tag) => MODEL_ROOTS.includes(tag))
  if (folder !== undefined && MODEL_ROOTS.includes(folder)) return folder
  throw invalidField('tags', 'must name the folder of a model, such as ["models", "loras"]', { allowed: MODEL_ROOTS })
}

/** A tag of a place is refused: it would say of a file what is not so. */
export function readOwnTags(tags: readonly string[]): readonly string[] {
  const own = readTags(tags)
  const place = own.find(isPlaceTag)
  if (place === undefined) return own
  throw invalidField('tags', `must not hold ${place}: it says where a file is kept; upload the file to that place`)
}

/**
 * The files of a call, as references that its graph takes: what the account has already is found, content and addresses become
 * assets first. Whatever is wrong with any of them is said of its input, and all of it at once.
 */
import type { Clock } from '../../../lib/clock.ts'
import { isUuid } from '../../../lib/ids.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/lossless-json.ts'
import type { Asset } from '../assets/asset.ts'
import type { BlobStore } from '../assets/blob-store.ts'
import {
  GivenFileError,
  type GivingRequest,
  isDataUrl,
  type MediaKind,
  mustFitStored,
  type TakeGivenFiles,
} from '../assets/given-files.ts'
import { ServiceError } from '../errors.ts'
import type { CheckedBytes } from '../moderation/check-links.ts'
import {
  type AssetFinder,
  type AssetRef,
  readReference,
  resolveFiles,
  toReference,
} from '../workflows/resolve-files.ts'
import type { FileInput, FileKind, InputProblem } from './endpoint.ts'

/** A file that a call gives, with what its input asks of it. */
export interface InputFile extends Pick<FileInput, 'name' | 'kind' | 'maxBytes' | 'maxPixels'> {
  readonly value: JsonValue
}

interface TakenFiles {
  /** By the name of the input, what its places in the graph get. */
  readonly taken: ReadonlyMap<string, JsonObject>
  /** The same as what they hold. */
  readonly bytes: ReadonlyMap<string, CheckedBytes>
  readonly problems: readonly InputProblem[]
}

/** Throws ServiceError where storage fails, and the reason of the request's signal once that is aborted. */
export type TakeFiles = (accountId: string, files: readonly InputFile[], request: GivingRequest) => Promise<TakenFiles>

interface TakeFilesDeps {
  readonly takeGivenFiles: TakeGivenFiles
  readonly assets: AssetFinder
  readonly blobs: Pick<BlobStore, 'open'>
  readonly clock: Clock
}

export function createTakeFiles(deps: TakeFilesDeps): TakeFiles {
  const { takeGivenFiles } = deps
  return async function takeFiles(accountId, files, request) {
    const read = files.map((file) => ({ file, source: readSource(file.value) }))
    const given = read.flatMap(({ file, source }) => (source.from === 'url' ? [{ file, url: source.url }] : []))
    const [fetched, found] = await Promise.all([
      takeGivenFiles(
        accountId,
        given.map(({ file, url }) => ({ ...toBounds(file), url })),
        request,
      ),
      Promise.all(
        read.map(({ file, source }) => (source.from === 'url' ? null : findStored(deps, accountId, file, source))),
      ),
    ])
    const outcomes = read.map(({ file }, index) => {
      const outcome = found[index] ?? fetched[given.findIndex((one) => one.file === file)]
      return { name: file.name, outcome }
    })
    const assets = outcomes.flatMap(({ name, outcome }) =>
      outcome instanceof GivenFileError ? [] : [[name, outcome] as const],
    )
    return {
      taken: new Map(assets.map(([name, asset]) => [name, toReference(asset)])),
      bytes: new Map(assets),
      problems: outcomes.flatMap(({ name, outcome }) =>
        outcome instanceof GivenFileError
          ? [{ name, reason: outcome.fault, message: `${name}: ${outcome.message}` }]
          : [],
      ),
    }
  }
}

const MEDIA: Readonly<Record<FileKind, MediaKind>> = {
  image: 'image',
  mask: 'image',
  video: 'video',
  audio: 'audio',
  model3d: 'model3d',
  file: 'file',
}

function toBounds({ kind, maxBytes, maxPixels }: InputFile) {
  return { kind: MEDIA[kind], maxBytes, maxPixels }
}

type Source =
  | { readonly from: 'url'; readonly url: string }
  | { readonly from: 'asset'; readonly ref: AssetRef }
  | { readonly from: 'name'; readonly name: string }
  | { readonly from: 'nowhere' }

const ADDRESS = /^[a-z][a-z0-9+.-]*:\/\//i
const HASH = /^(?:blake3:)?([0-9a-f]{64})$/i

function readSource(value: JsonValue): Source {
  if (typeof value === 'string') {
    if (isDataUrl(value) || ADDRESS.test(value)) return { from: 'url', url: value }
    if (isUuid(value)) return { from: 'asset', ref: { kind: 'id', given: value } }
    const hash = HASH.exec(value)?.[1].toLowerCase()
    if (hash !== undefined) return { from: 'asset', ref: { kind: 'hash', given: value, hash } }
    return value === '' ? { from: 'nowhere' } : { from: 'name', name: value }
  }
  if (!isJsonObject(value)) return { from: 'nowhere' }
  if (Object.keys(value).length === 1 && typeof value['url'] === 'string') return { from: 'url', url: value['url'] }
  const ref = readReference(value)
  if (ref?.kind === 'url') return { from: 'url', url: ref.given }
  return ref === null || ref.kind === 'malformed' ? { from: 'nowhere' } : { from: 'asset', ref }
}

/** Content, or an address: it would become an asset first. */
export function isNewFile(value: JsonValue): boolean {
  return readSource(value).from === 'url'
}

async function findStored(
  deps: TakeFilesDeps,
  accountId: string,
  file: InputFile,
  source: Exclude<Source, { from: 'url' }>,
): Promise<Asset | GivenFileError> {
  if (source.from === 'nowhere')
    return new GivenFileError('not_a_file', 'give an uploaded file, an asset, a data URL or an https address')
  const asset = await look(deps, accountId, source)
  if (asset === null) return new GivenFileError('not_available', 'the account has no such file')
  try {
    await mustFitStored(deps, asset, toBounds(file))
    return asset
  } catch (error) {
    if (error instanceof GivenFileError) return error
    if (!(error instanceof ServiceError) || error.refusal !== 'output_unavailable') throw error
    return new GivenFileError('not_available', 'the bytes of this file are gone')
  }
}

async function look(
  { assets, clock }: TakeFilesDeps,
  accountId: string,
  source: Extract<Source, { from: 'asset' | 'name' }>,
): Promise<Asset | null> {
  const refs = source.from === 'asset' ? [source.ref] : []
  const names = new Set(source.from === 'name' ? [source.name] : [])
  const query = { accountId, refs, names, folders: new Set<string>(), now: clock.now(), hasFlatNames: true }
  try {
    const files = await resolveFiles(assets, query)
    return source.from === 'asset' ? files.assetOf(source.ref) : (files.byName.get(source.name) ?? null)
  } catch (error) {
    if (error instanceof ServiceError && error.refusal === 'missing_asset') return null
    throw error
  }
}

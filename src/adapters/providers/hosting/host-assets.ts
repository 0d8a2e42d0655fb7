/**
 * Copies the assets of a result to our storage and replaces their addresses. An asset that cannot be copied keeps the provider's
 * address: the result is paid for, and a caller who reads it at once can still fetch it.
 */
import type { Readable } from 'node:stream'
import type { Clock } from '../../../../lib/clock.ts'
import { inOneChunk, readStart } from '../../../../lib/files/byte-streams.ts'
import { extensionFromType, isActiveType, SNIFF_BYTES, sniffType, toBareType } from '../../../../lib/files/mime.ts'
import type { NewId } from '../../../../lib/ids.ts'
import { type JsonValue, parseLosslessJson, stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'
import type { Log } from '../../../../lib/log.ts'
import type { SafeFetch } from '../../../../lib/outbound/safe-fetch.ts'
import type { AssetStore } from '../../../domain/assets/asset-store.ts'
import type { StoreBlob } from '../../../domain/assets/blob-store.ts'
import type { SignContentUrl } from '../../../domain/assets/signed-url.ts'
import {
  type FetchResultMedia,
  type HostAssets,
  type HostingRequest,
  mayNameAssets,
} from '../../../domain/models/calls/conclude-call.ts'
import { findLeaves, type JsonPath, type Leaf, type Model, readJsonPath } from '../../../domain/models/catalog/model.ts'
import type { ModelRules } from '../declarative/rules/rule-types.ts'

/** The headers for a download from one of a provider's own hosts; empty for every other host. */
export type DownloadHeaders = (
  of: Pick<HostingRequest, 'model' | 'accountId' | 'isOwnKey'>,
) => Promise<CopyRequest['headersFor']>

export interface HostAssetsDeps extends CopyDeps {
  readonly downloadHeaders: DownloadHeaders
  readonly log: Log
}

const COPY_MS = 120_000
const INLINE_LIFETIME_MS = 24 * 60 * 60 * 1000
const ADDRESS = /^(https?|gs):\/\//

interface HostedPaths {
  readonly hosted: readonly JsonPath[]
  readonly all: readonly JsonPath[]
}

export function createHostAssets(deps: HostAssetsDeps): HostAssets {
  const known = new WeakMap<Model, HostedPaths>()

  function pathsOf(model: Model): HostedPaths {
    const found = known.get(model) ?? toPaths(model)
    known.set(model, found)
    return found
  }

  function toCopy(
    request: HostingRequest,
    index: number,
    options: Parameters<HostAssets>[1] & Pick<CopyRequest, 'headersFor'>,
  ): CopyRequest {
    const { model, accountId, callId } = request
    const leftMs = options.deadline.getTime() - deps.clock.now().getTime()
    return {
      accountId,
      callId,
      index,
      lifetimeMs: model.hosting?.lifetimeMs ?? INLINE_LIFETIME_MS,
      fallbackType: model.output.modalities.includes('video') ? 'video/mp4' : 'image/jpeg',
      ...{ signal: options.signal, headersFor: options.headersFor },
      timeMs: Math.max(1, Math.min(COPY_MS, leftMs)),
    }
  }

  /** True when the leaf was replaced. */
  async function copyLeaf(leaf: Leaf, copy: CopyRequest, { baseUrl, model }: HostingRequest): Promise<boolean> {
    try {
      const url = await copyFromUrl(toDownloadUrl(String(leaf.value)), copy, deps)
      leaf.holder[leaf.key] = `${baseUrl}${url}`
      // The same picture inline would only make the answer larger.
      if (typeof leaf.holder['b64_json'] === 'string') leaf.holder['b64_json'] = null
      return true
    } catch (error) {
      const reason = error instanceof Error ? error.message : 'unknown'
      deps.log.warn({ model: model.id, callId: copy.callId, reason }, 'an asset could not be copied')
      return false
    }
  }

  /** `{inlineData: {mimeType, data}}` becomes `{fileData: {mimeType, fileUri}}`. */
  async function copyPart(part: Record<string, unknown>, copy: CopyRequest, baseUrl: string): Promise<boolean> {
    const inline = part['inlineData'] as { mimeType?: unknown; data?: unknown } | undefined
    if (typeof inline?.data !== 'string' || inline.data === '') return false
    const fallbackType = typeof inline.mimeType === 'string' ? inline.mimeType : copy.fallbackType
    const url = await copyInline(Buffer.from(inline.data, 'base64'), { ...copy, fallbackType }, deps)
    delete part['inlineData']
    part['fileData'] = { mimeType: fallbackType, fileUri: `${baseUrl}${url}` }
    return true
  }

  return async function hostAssets(request, bounds) {
    const { model, body, inlineParts = null } = request
    const paths = pathsOf(model)
    if (!mayNameAssets(request) || (paths.all.length === 0 && inlineParts === null))
      return { body, hasForeignUrls: false }
    const document = parseLosslessJson(body.toString('utf8')) as JsonValue
    const options = { ...bounds, headersFor: await deps.downloadHeaders(request) }
    const leaves = paths.hosted.flatMap((path) => addressesAt(document, path))
    const parts = inlineParts === null ? [] : findLeaves(document, readJsonPath(inlineParts)).map(({ value }) => value)
    const copied = await Promise.all([
      ...leaves.map((leaf, index) => copyLeaf(leaf, toCopy(request, index, options), request)),
      ...parts.map((part, index) =>
        copyPart(
          part as Record<string, unknown>,
          toCopy(request, leaves.length + index, options),
          request.baseUrl,
        ).catch(() => false),
      ),
    ])
    const ours = new Set(leaves.filter((_leaf, index) => copied[index]).map(({ holder, key }) => holder[key]))
    const left = paths.all.flatMap((path) => addressesAt(document, path)).filter(({ value }) => !ours.has(value))
    return {
      body: copied.includes(true) ? Buffer.from(stringifyLosslessJson(document)) : body,
      hasForeignUrls: left.some(({ value }) => !String(value).startsWith(request.baseUrl)),
    }
  }
}

function toPaths({ hosting, adapter, output }: Model): HostedPaths {
  const { assets = [] } = adapter as unknown as Partial<ModelRules>
  const hosted = hosting?.leaves ?? []
  // A text that begins with an address is an answer, and names nothing that the provider made.
  const isText = output.modalities.length > 0 && output.modalities.every((modality) => modality === 'text')
  const all = new Set([...hosted, ...(isText ? [] : assets)])
  return { hosted: hosted.map(readJsonPath), all: [...all].map(readJsonPath) }
}

/** Also inside lists and objects: some providers give one address, several, or an object of them. */
function addressesAt(document: unknown, path: JsonPath): Leaf[] {
  return findLeaves(document, path).flatMap(addressesIn)
}

function addressesIn(leaf: Leaf): Leaf[] {
  const { value } = leaf
  if (typeof value === 'string') return ADDRESS.test(value) ? [leaf] : []
  if (typeof value !== 'object' || value === null) return []
  const holder = value as Record<string, unknown>
  return Object.entries(holder).flatMap(([key, item]) => addressesIn({ holder, key, value: item }))
}

const GOOGLE_STORAGE = /^gs:\/\/([^/]+)\/(.+)$/

/** Where an object of Google's storage, named `gs://bucket/object`, is read over HTTP. Other addresses stay as they are. */
function toDownloadUrl(address: string): string {
  const found = GOOGLE_STORAGE.exec(address)
  if (found === null) return address
  const [, bucket, object] = found
  const name = encodeURIComponent(object)
  return `https://storage.googleapis.com/storage/v1/b/${encodeURIComponent(bucket)}/o/${name}?alt=media`
}

/**
 * Copies one asset of a result to our storage and returns its new address. The source is a foreign server, so it is read by the
 * guarded client, within bounds of size and time, and only media are kept, never a web page.
 */
interface CopyDeps {
  readonly fetch: SafeFetch
  readonly storeBlob: StoreBlob
  readonly assets: Pick<AssetStore, 'mint'>
  readonly sign: SignContentUrl
  readonly newId: NewId
  readonly clock: Clock
  readonly maxBytes: number
  /** What the account may still keep; left out: as much as it likes. */
  readonly storageLeft?: (accountId: string) => Promise<number>
}

interface CopyRequest {
  readonly accountId: string
  readonly callId: string
  /** Which asset of the result it is. */
  readonly index: number
  readonly lifetimeMs: number
  readonly fallbackType: string
  readonly signal: AbortSignal
  readonly timeMs: number
  /** For downloads that need the provider's key; asked for every hop. */
  readonly headersFor: (url: URL) => Readonly<Record<string, string>>
}

/** Throws an error whose message shows no more of the address than its host. */
async function copyFromUrl(url: string, request: CopyRequest, deps: CopyDeps): Promise<string> {
  const { signal, timeMs, headersFor } = request
  const limits = { signal, headTimeMs: timeMs, bodyTimeMs: timeMs, maxBytes: deps.maxBytes, mayStream: () => true }
  const answer = await deps.fetch(url, { ...limits, allowedHosts: null, headersFor })
  const body = answer.body as Readable
  if (answer.status !== 200) {
    body.destroy()
    throw new Error(`the asset's server answered ${answer.status}`)
  }
  try {
    const { start, source } = await readStart(body.iterator() as AsyncIterator<Buffer>, SNIFF_BYTES)
    const contentType = judgeType(answer.headers['content-type'], start, request.fallbackType)
    return await keep(source, contentType, request, deps)
  } finally {
    body.destroy()
  }
}

async function copyInline(bytes: Buffer, request: CopyRequest, deps: CopyDeps): Promise<string> {
  const contentType = sniffType(bytes) ?? request.fallbackType
  return keep(inOneChunk(bytes), contentType, request, deps)
}

async function keep(
  source: AsyncIterable<Uint8Array>,
  contentType: string,
  { accountId, callId, index, lifetimeMs, signal }: CopyRequest,
  { storeBlob, assets, sign, newId, clock, maxBytes, storageLeft }: CopyDeps,
): Promise<string> {
  const left = (await storageLeft?.(accountId)) ?? Number.POSITIVE_INFINITY
  const { hash, sizeBytes } = await storeBlob(source, { maxBytes: Math.max(0, Math.min(maxBytes, left)), signal })
  if (sizeBytes === 0) throw new Error('the asset is empty')
  const createdAt = clock.now()
  const expiresAt = new Date(createdAt.getTime() + lifetimeMs)
  const filePath = `router/${callId}/${index}.${extensionFromType(contentType) ?? 'bin'}`
  const about = { id: newId(), accountId, hash, sizeBytes, contentType, filePath, tags: ['router'], jobId: null }
  const minted = await assets.mint({ asset: { ...about, createdAt, expiresAt }, keyClaim: null, mustOwnHash: false })
  if (minted.outcome !== 'minted' && minted.outcome !== 'existing') throw new Error('the asset got no record')
  return sign({ accountId, assetId: minted.asset.id, expiresAt })
}

const MEDIA = /^(image|video|audio|model)\//
const NO_TYPE: ReadonlySet<string> = new Set(['', 'application/octet-stream', 'binary/octet-stream'])

/** The type that the server names if it is a media type, else the one that the bytes show, else that of the model's output. */
function judgeType(header: string | undefined, start: Buffer, fallback: string): string {
  const said = toBareType(header ?? '')
  if (MEDIA.test(said) && !isActiveType(said)) return said
  const seen = sniffType(start)
  if (seen !== null && isActiveType(seen)) throw new Error(`the asset is ${seen}, which is not kept`)
  if (seen !== null) return seen
  if (NO_TYPE.has(said)) return fallback
  throw new Error(`the asset is ${said}, which is not an image, video or sound`)
}

const INLINE_MAX_BYTES = 64 * 1024 * 1024

/** Reads what an answer names into memory, for callers who get it inline. */
export function createFetchMedia({
  fetch,
  downloadHeaders,
  log,
}: Pick<HostAssetsDeps, 'fetch' | 'downloadHeaders' | 'log'>): FetchResultMedia {
  return async function fetchMedia({ model, accountId, isOwnKey, url }, { signal }) {
    try {
      const headersFor = await downloadHeaders({ model, accountId, isOwnKey })
      const limits = {
        signal,
        headTimeMs: COPY_MS,
        bodyTimeMs: COPY_MS,
        maxBytes: INLINE_MAX_BYTES,
        allowedHosts: null,
      }
      const answer = await fetch(toDownloadUrl(url), { ...limits, headersFor })
      if (answer.status !== 200 || !Buffer.isBuffer(answer.body))
        throw new Error(`it was answered with ${answer.status}`)
      const stated = toBareType(answer.headers['content-type'] ?? '')
      return { contentType: sniffType(answer.body) ?? stated, bytes: answer.body }
    } catch (error) {
      const reason = error instanceof Error ? error.message : 'unknown'
      log.warn({ model: model.id, reason }, 'media of an answer could not be read; their address is given instead')
      return null
    }
  }
}

/**
 * Copies the assets of a result to our storage and replaces their addresses. An asset that cannot be copied keeps the provider's
 * address: the result is paid for, and a caller who reads it at once can still fetch it.
 */
import { type JsonValue, parseLosslessJson, stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'
import type { Log } from '../../../../lib/log.ts'
import { type HostAssets, type HostingRequest, mayNameAssets } from '../../../domain/models/calls/keep-result.ts'
import { findLeaves, type JsonPath, type Leaf, readJsonPath } from '../../../domain/models/catalog/json-path.ts'
import type { Model } from '../../../domain/models/catalog/model.ts'
import type { ModelRules } from '../declarative/rules/rule-types.ts'
import { type CopyDeps, type CopyRequest, copyFromUrl, copyInline } from './copy-asset.ts'

/** The headers for a download from one of a provider's own hosts; empty for every other host. */
export type DownloadHeaders = (model: Model, accountId: string, url: URL) => Readonly<Record<string, string>>

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

  function toCopy(request: HostingRequest, index: number, options: Parameters<HostAssets>[1]): CopyRequest {
    const { model, accountId, callId } = request
    const leftMs = options.deadline.getTime() - deps.clock.now().getTime()
    return {
      accountId,
      callId,
      index,
      lifetimeMs: model.hosting?.lifetimeMs ?? INLINE_LIFETIME_MS,
      fallbackType: model.output.modalities.includes('video') ? 'video/mp4' : 'image/jpeg',
      signal: options.signal,
      timeMs: Math.max(1, Math.min(COPY_MS, leftMs)),
      headersFor: (url) => deps.downloadHeaders(model, accountId, url),
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

  return async function hostAssets(request, options) {
    const { model, body, inlineParts = null } = request
    const paths = pathsOf(model)
    if (!mayNameAssets(request)) return { body, hasForeignUrls: false }
    const document = parseLosslessJson(body.toString('utf8')) as JsonValue
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
    const isChanged = copied.includes(true)
    return {
      body: isChanged ? Buffer.from(stringifyLosslessJson(document)) : body,
      hasForeignUrls: left.some(({ value }) => !String(value).startsWith(request.baseUrl)),
    }
  }
}

function toPaths({ hosting, adapter }: Model): HostedPaths {
  const { assets = [] } = adapter as unknown as Partial<ModelRules>
  const hosted = hosting?.leaves ?? []
  return { hosted: hosted.map(readJsonPath), all: [...new Set([...hosted, ...assets])].map(readJsonPath) }
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

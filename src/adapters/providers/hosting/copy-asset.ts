/**
 * Copies one asset of a result to our storage and returns its new address. The source is a foreign server, so it is read by the
 * guarded client, within bounds of size and time, and only media are kept, never a web page.
 */

import type { Readable } from 'node:stream'
import type { Clock } from '../../../../lib/clock.ts'
import { inOneChunk } from '../../../../lib/files/in-one-chunk.ts'
import { extensionFromType, isActiveType, toBareType } from '../../../../lib/files/mime.ts'
import { SNIFF_BYTES, sniffType } from '../../../../lib/files/sniff-type.ts'
import type { NewId } from '../../../../lib/ids.ts'
import type { AssetStore } from '../../../domain/assets/asset-store.ts'
import type { StoreBlob } from '../../../domain/assets/blob-store.ts'
import type { SignContentUrl } from '../../../domain/assets/signed-url.ts'
import type { SafeFetch } from '../outbound/safe-fetch.ts'

export interface CopyDeps {
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

export interface CopyRequest {
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
export async function copyFromUrl(url: string, request: CopyRequest, deps: CopyDeps): Promise<string> {
  const { signal, timeMs, headersFor } = request
  const limits = { signal, headTimeMs: timeMs, bodyTimeMs: timeMs, maxBytes: deps.maxBytes, mayStream: () => true }
  const answer = await deps.fetch(url, { ...limits, allowedHosts: null, headersFor })
  const body = answer.body as Readable
  if (answer.status !== 200) {
    body.destroy()
    throw new Error(`the asset's server answered ${answer.status}`)
  }
  try {
    const { start, source } = await readStart(body)
    const contentType = judgeType(answer.headers['content-type'], start, request.fallbackType)
    return await keep(source, contentType, request, deps)
  } finally {
    body.destroy()
  }
}

export async function copyInline(bytes: Buffer, request: CopyRequest, deps: CopyDeps): Promise<string> {
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

/** The first bytes, and the whole source again. */
async function readStart(body: Readable): Promise<{ start: Buffer; source: AsyncIterable<Uint8Array> }> {
  const iterator = body.iterator() as AsyncIterator<Buffer>
  const chunks: Buffer[] = []
  let size = 0
  while (size < SNIFF_BYTES) {
    const step = await iterator.next()
    if (step.done) break
    chunks.push(step.value)
    size += step.value.length
  }
  return { start: Buffer.concat(chunks), source: readOn(chunks, iterator) }
}

async function* readOn(chunks: readonly Buffer[], rest: AsyncIterator<Buffer>): AsyncGenerator<Uint8Array> {
  yield* chunks
  for (let step = await rest.next(); !step.done; step = await rest.next()) yield step.value
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

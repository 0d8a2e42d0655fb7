/**
 * Files that a request brings along as an address or as content in a data URL. They become assets of the account before anything
 * that uses them is accepted, so no job depends on a foreign server, and equal bytes are kept once. What such a file is, its first
 * bytes say: neither its name nor what its server claims. All files of a request are looked at, and each has its own fault.
 */
import type { Ticker } from '../../../lib/clock.ts'
import { inOneChunk, readStart } from '../../../lib/files/byte-streams.ts'
import { hasSignature, SNIFF_BYTES, sniffType, toBareType, typeFromName } from '../../../lib/files/mime.ts'
import { PICTURE_HEAD_BYTES, type PictureSize, readFrom, readPictureSize } from '../../../lib/files/picture-size.ts'
import { createSemaphore, type Semaphore } from '../../../lib/waiting/semaphore.ts'
import { ServiceError } from '../errors.ts'
import type { Asset } from './asset.ts'
import { type BlobStore, type SettleBlobDeps, settleBlob } from './blob-store.ts'
import type { UploadPolicy } from './create/upload-policy.ts'
import type { StorageQuota } from './storage-quota.ts'

export type MediaKind = 'image' | 'video' | 'audio' | 'model3d' | 'file'

export type FileFault =
  | 'not_a_file'
  | 'unsupported_type'
  | 'file_too_large'
  | 'fetch_failed'
  | 'fetch_forbidden'
  | 'not_available'

/** The message completes a sentence that begins with what the file is for: "photo: the file is text/html". */
export class GivenFileError extends Error {
  readonly fault: FileFault
  /** The status of its server's answer, where that is the fault. */
  readonly answered: number | null

  constructor(fault: FileFault, message: string, answered: number | null = null) {
    super(message)
    this.name = 'GivenFileError'
    this.fault = fault
    this.answered = answered
  }
}

/** What a file is for. */
interface FileBounds {
  readonly kind: MediaKind
  /** null: as large as files of the kind may be. */
  readonly maxBytes: number | null
  /** Of pictures; null: as many as any picture may have. */
  readonly maxPixels: number | null
}

export interface GivenFile extends FileBounds {
  /** An address, or a data URL. */
  readonly url: string
}

interface FetchOptions {
  readonly maxBytes: number
  readonly signal: AbortSignal
}

export interface FetchedFile extends AsyncDisposable {
  /** To be read once. */
  readonly body: AsyncIterable<Uint8Array>
  // What its server says, which is not to be trusted.
  readonly contentType: string
  /** null: it does not say. */
  readonly sizeBytes: number | null
  /** null: it does not say. */
  readonly fileName: string | null
  /** Where the redirects led. */
  readonly finalUrl: string
}

/** Gets the bytes behind an address that a caller gave, from where the operator allows it. Throws GivenFileError. */
export type FetchInput = (url: string, options: FetchOptions) => Promise<FetchedFile>

/** One request, whichever number of jobs it makes. */
export interface GivingRequest {
  /** Ends all fetches: whoever asked has gone. */
  readonly signal?: AbortSignal
  /** What it asked for before; an address is fetched once. Left out: nothing. */
  readonly known?: Map<string, Promise<Asset | GivenFileError>>
}

/** In the order of the files. Throws ServiceError where storage fails, and the signal's reason once that is aborted. */
export type TakeGivenFiles = (
  accountId: string,
  files: readonly GivenFile[],
  request: GivingRequest,
) => Promise<(Asset | GivenFileError)[]>

interface GivenFilesDeps extends JudgeDeps, SettleBlobDeps {
  readonly uploads: UploadPolicy
  readonly quota: Pick<StorageQuota, 'noteUnrecorded'>
  readonly fetchInput: FetchInput
  readonly ticker: Ticker
}

const MAX_ADDRESSES = 16
// A submit is answered within a minute, whatever foreign servers do.
const WHOLE_MS = 60_000
const PER_ACCOUNT = 4
const PER_PROCESS = 32

export function createTakeGivenFiles(deps: GivenFilesDeps): TakeGivenFiles {
  const { uploads, quota, fetchInput, ticker } = deps
  const room = createRoom()

  async function fetchOne(accountId: string, file: GivenFile, signal: AbortSignal): Promise<Asset> {
    const giveBack = await room.take(accountId, signal)
    try {
      await using fetched = await fetchInput(file.url, { maxBytes: toMaxBytes(file, null), signal })
      return await keep(accountId, file, { ...fetched, name: nameOf(file.url), signal })
    } finally {
      giveBack()
    }
  }

  async function keepInline(accountId: string, file: GivenFile, signal: AbortSignal): Promise<Asset> {
    const { contentType, bytes } = readDataUrl(file.url)
    return keep(accountId, file, { contentType, body: inOneChunk(bytes), name: '', signal })
  }

  async function keep(accountId: string, file: GivenFile, given: GivenBytes): Promise<Asset> {
    const { start, source } = await readStart(given.body[Symbol.asyncIterator](), PICTURE_HEAD_BYTES)
    const contentType = judgeType(start, file.kind, given)
    const early = isPicture(contentType) ? await readPictureSize(readFrom(start), contentType) : null
    if (early !== null) mustBeSmall(early, file)
    const { signal } = given
    const admission = await uploads.admit(accountId, cutAt(source, toMaxBytes(file, contentType)), { signal })
    try {
      const { pending } = admission
      const { hash, sizeBytes } = pending
      await settleBlob(pending, deps)
      if (early === null && isPicture(contentType)) await mustFit(deps, { hash, sizeBytes, contentType }, file)
      const record = { accountId, hash, sizeBytes, contentType, filePath: null, tags: [] }
      return (await uploads.record({ ...record, expiresInSeconds: null, idempotencyKey: null })).asset
    } catch (error) {
      if (error instanceof GivenFileError) quota.noteUnrecorded(accountId, admission.pending.sizeBytes)
      throw error
    } finally {
      admission.end()
    }
  }

  return async function takeGivenFiles(accountId, files, { signal, known = new Map() }) {
    const ending = new AbortController()
    const late = new GivenFileError('fetch_failed', `it took longer than ${WHOLE_MS / 1000} s`)
    const forget = ticker.after(WHOLE_MS, () => ending.abort(late))
    const both = signal === undefined ? ending.signal : AbortSignal.any([ending.signal, signal])
    const attempt = (work: Promise<Asset>) => work.catch((error: unknown) => toFault(error, both))
    const take = async (file: GivenFile) => {
      if (isDataUrl(file.url)) return attempt(keepInline(accountId, file, both))
      const key = [file.kind, file.maxBytes, file.maxPixels, file.url].join(' ')
      if (!known.has(key)) {
        if (known.size >= MAX_ADDRESSES) return tooMany
        known.set(key, attempt(fetchOne(accountId, file, both)))
      }
      return known.get(key)!
    }
    try {
      const taken = await Promise.all(files.map(take))
      signal?.throwIfAborted()
      return taken
    } finally {
      forget()
      // What failed on its own left the others running.
      ending.abort(late)
    }
  }
}

interface GivenBytes extends Pick<FetchedFile, 'body' | 'contentType'> {
  readonly name: string
  readonly signal: AbortSignal
}

/** Returns what is the fault of the file, and throws everything else. */
function toFault(error: unknown, signal: AbortSignal): GivenFileError {
  if (error instanceof GivenFileError) return error
  if (signal.aborted && signal.reason instanceof GivenFileError) return signal.reason
  if (error instanceof ServiceError && error.refusal === 'payload_too_large')
    return new GivenFileError('file_too_large', error.message)
  throw error
}

/** How many are read at a time, in this process and of one account. */
function createRoom() {
  const ofProcess = createSemaphore(PER_PROCESS)
  const ofAccounts = new Map<string, Semaphore>()
  return {
    async take(accountId: string, signal: AbortSignal): Promise<() => void> {
      const own = ofAccounts.get(accountId) ?? createSemaphore(PER_ACCOUNT)
      ofAccounts.set(accountId, own)
      const taken: (() => void)[] = []
      const leave = () => {
        for (const giveBack of taken) giveBack()
        if (own.taken + own.waiting === 0) ofAccounts.delete(accountId)
      }
      try {
        taken.push(await own.take(signal))
        taken.push(await ofProcess.take(signal))
        return leave
      } catch (error) {
        leave()
        throw error
      }
    },
  }
}

const tooMany = new GivenFileError('fetch_forbidden', `a request may name ${MAX_ADDRESSES} addresses at most`)

// What a file may be.

const MIB = 1024 * 1024
const PICTURE_BYTES = 50 * MIB
const OTHER_BYTES = 500 * MIB
// As many as previews are made of.
const PICTURE_PIXELS = 67_108_864

/** By which types each kind is served; `file` by any that is no page. */
const FITS: Readonly<Record<MediaKind, (contentType: string) => boolean>> = {
  image: (type) => isPicture(type) && type !== 'image/svg+xml',
  video: (type) => type.startsWith('video/') || type === 'image/gif',
  // A container for video may hold sound alone.
  audio: (type) => type.startsWith('audio/') || type.startsWith('video/'),
  model3d: (type) => type.startsWith('model/'),
  file: () => true,
}

const NOUN: Readonly<Record<MediaKind, string>> = {
  image: 'a picture',
  video: 'a video',
  audio: 'sound',
  model3d: 'a 3D model',
  file: 'a file',
}

function isPicture(contentType: string): boolean {
  return contentType.startsWith('image/')
}

function toMaxBytes({ kind, maxBytes }: FileBounds, contentType: string | null): number {
  const ofKind = kind === 'image' || (contentType !== null && isPicture(contentType)) ? PICTURE_BYTES : OTHER_BYTES
  return Math.min(ofKind, maxBytes ?? ofKind)
}

interface Claims {
  readonly contentType: string
  readonly name: string
}

/** Some 3D models and most other files have no first bytes of their own: of those, what is said of them counts. */
function judgeType(start: Buffer, kind: MediaKind, { contentType, name }: Claims): string {
  if (start.length === 0) throw new GivenFileError('not_a_file', 'the file is empty')
  const said = typeFromName(name) ?? toBareType(contentType)
  const type = sniffType(start) ?? (hasSignature(said) ? '' : said)
  if (type === 'text/html') throw new GivenFileError('unsupported_type', 'the file is a web page')
  if (FITS[kind](type)) return type === '' ? 'application/octet-stream' : type
  const what = type === '' ? 'of no known type' : type
  throw new GivenFileError('unsupported_type', `the file is ${what}, and ${NOUN[kind]} is needed`)
}

interface JudgeDeps {
  readonly blobs: Pick<BlobStore, 'open'>
}

/** For pictures whose first bytes do not tell their size. Throws GivenFileError. */
async function mustFit(
  { blobs }: JudgeDeps,
  { hash, sizeBytes, contentType }: Pick<Asset, 'hash' | 'sizeBytes' | 'contentType'>,
  bounds: FileBounds,
): Promise<void> {
  const read = (start: number, length: number) => readRange(blobs, { hash, sizeBytes }, start, length)
  const size = await readPictureSize(read, contentType)
  if (size !== null) mustBeSmall(size, bounds)
  else if (bounds.kind === 'image')
    throw new GivenFileError('unsupported_type', 'the file does not say how large its picture is')
}

function mustBeSmall({ width, height }: PictureSize, { maxPixels }: FileBounds): void {
  const most = Math.min(PICTURE_PIXELS, maxPixels ?? PICTURE_PIXELS)
  if (width * height <= most) return
  throw new GivenFileError('file_too_large', `the picture has ${width} x ${height} pixels; at most ${most} are taken`)
}

/** Judges a file that the account has already, as if it came now. Throws GivenFileError. */
export async function mustFitStored(deps: JudgeDeps, asset: Asset, bounds: FileBounds): Promise<void> {
  if (bounds.maxBytes !== null && asset.sizeBytes > bounds.maxBytes) throw tooLarge(bounds.maxBytes)
  if (bounds.kind === 'file') return
  const start = await readRange(deps.blobs, asset, 0, SNIFF_BYTES)
  const claims = { contentType: asset.contentType, name: asset.filePath ?? '' }
  const contentType = judgeType(start, bounds.kind, claims)
  if (isPicture(contentType)) await mustFit(deps, { ...asset, contentType }, bounds)
}

async function readRange(
  { open }: Pick<BlobStore, 'open'>,
  { hash, sizeBytes }: Pick<Asset, 'hash' | 'sizeBytes'>,
  start: number,
  length: number,
): Promise<Buffer> {
  const end = Math.min(start + length, sizeBytes)
  if (start >= end) return Buffer.alloc(0)
  const chunks: Buffer[] = []
  for await (const chunk of await open(hash, { start, end: end - 1 })) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

async function* cutAt(source: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Uint8Array> {
  let size = 0
  for await (const chunk of source) {
    size += chunk.length
    if (size > maxBytes) throw tooLarge(maxBytes)
    yield chunk
  }
}

function tooLarge(maxBytes: number): GivenFileError {
  return new GivenFileError('file_too_large', `the file has more than ${maxBytes} bytes`)
}

/** The last part of the path of an address, for its extension. */
function nameOf(url: string): string {
  const path = URL.parse(url)?.pathname ?? ''
  return path.slice(path.lastIndexOf('/') + 1)
}

// Content that stands in the request itself.

const INLINE_BYTES = 10 * MIB
// Written out character by character, which nobody does with a picture.
const PLAIN_BYTES = MIB
const DATA_URL = /^data:([^,;]*)((?:;[^,;]*)*),/i

export function isDataUrl(text: string): boolean {
  return /^data:/i.test(text)
}

/** `most`: how many bytes in base64; left out: as many as a request may bring along. Throws GivenFileError. */
export function readDataUrl(
  url: string,
  most = INLINE_BYTES,
): { readonly contentType: string; readonly bytes: Buffer } {
  const [head, type, parameters] = DATA_URL.exec(url.slice(0, 1024)) ?? []
  if (head === undefined) throw new GivenFileError('not_a_file', 'the data URL has no comma before its content')
  const isBase64 = /;\s*base64$/i.test(parameters)
  const maxBytes = isBase64 ? most : PLAIN_BYTES
  // Four characters of base64 make three bytes; three make one where each is written with a %.
  if (url.length - head.length > maxBytes * (isBase64 ? 1.4 : 3)) throw tooLarge(maxBytes)
  const content = url.slice(head.length)
  const bytes = isBase64 ? fromBase64(content) : fromPercent(content)
  if (bytes.length > maxBytes) throw tooLarge(maxBytes)
  return { contentType: type, bytes }
}

function fromBase64(text: string): Buffer {
  const bare = text.replace(/\s+/g, '')
  // What is no base64 would be skipped in silence.
  if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(bare)) throw new GivenFileError('not_a_file', 'the data URL holds no base64')
  return Buffer.from(bare, 'base64')
}

function fromPercent(text: string): Buffer {
  const bytes = Buffer.from(text).toString('latin1')
  return Buffer.from(
    bytes.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  )
}

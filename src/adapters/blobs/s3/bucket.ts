/**
 * The operations on a bucket that the store of bytes needs, each tried a few times. All of them may be repeated: names of objects
 * are never used twice, so a second PUT writes the same bytes, and what was removed is not missed.
 */
import type { Readable } from 'node:stream'
import { type Backoff, createBackoff, sleep } from '../../../../lib/waiting/sleep.ts'
import { blocksOf, type S3Client, type S3Request, textsOf } from './s3-client.ts'
import { hasS3Code, isNotFound, mayPass, S3Error } from './s3-error.ts'

/** Bytes that can be sent more than once. */
export interface Sendable {
  readonly sizeBytes: number
  /** CRC-32, in base64, as the wire has it. */
  readonly checksum: string
  body(): Uint8Array | Readable
}

export interface UploadedPart {
  readonly number: number
  readonly etag: string
  /** null: it was sent without one. */
  readonly checksum: string | null
}

export interface ListedPart extends UploadedPart {
  readonly sizeBytes: number
}

export interface ObjectStream {
  readonly body: Readable
  readonly sizeBytes: number
}

interface ListedObject {
  readonly key: string
  readonly sizeBytes: number
}

export interface Bucket {
  put(key: string, sendable: Sendable, options?: PutObjectOptions): Promise<void>
  /** One try: a reader that loses its stream goes on where it was. `range` as the header has it. */
  get(key: string, range: string | null, signal?: AbortSignal): Promise<ObjectStream>
  /** Small objects, whole; null when there is none. */
  read(key: string): Promise<Buffer | null>
  /** null when there is none. */
  sizeOf(key: string): Promise<number | null>
  remove(key: string): Promise<void>
  list(prefix: string): AsyncIterable<readonly ListedObject[]>
  /** `isOurs`: every part will carry a checksum of ours. */
  beginUpload(key: string, options?: { readonly isOurs: boolean }): Promise<string>
  putPart(key: string, upload: PartPlace, part: Sendable, signal?: AbortSignal): Promise<UploadedPart>
  /** The parts that have arrived. */
  listParts(key: string, uploadId: string): Promise<ListedPart[]>
  /** `sizeBytes` of the whole: how a lost answer is told from a lost upload. */
  completeUpload(key: string, uploadId: string, whole: WholeUpload): Promise<void>
  abandonUpload(key: string, uploadId: string): Promise<void>
  /** Uploads that were begun before then and never ended. */
  listUploads(prefix: string): AsyncIterable<readonly UnfinishedUpload[]>
  presign: S3Client['presign']
  readonly patience: Patience
  isAnswering: S3Client['isAnswering']
  stats: S3Client['stats']
}

interface PutObjectOptions {
  readonly signal?: AbortSignal
  /** Fails with `PreconditionFailed` when there is an object of this name, where the service knows of such conditions. */
  readonly mustBeNew?: boolean
}

interface PartPlace {
  readonly uploadId: string
  readonly number: number
}

interface WholeUpload {
  readonly parts: readonly UploadedPart[]
  readonly sizeBytes: number
}

interface UnfinishedUpload {
  readonly key: string
  readonly uploadId: string
  readonly begunAt: Date
}

// Stands in for the hash of a body that its checksum protects.
const UNSIGNED = { 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' }
// Joining thousands of parts takes minutes, and not every service says meanwhile that it is at work.
const COMPLETE_MS = 300_000
const XML = { ...UNSIGNED, 'content-type': 'application/xml' }

export function createBucket(client: S3Client, options: PatienceOptions = {}): Bucket {
  const patience = createPatience(options)
  const send = (request: S3Request) => patience.run(() => client.send(request), request.signal)

  async function sizeOf(key: string): Promise<number | null> {
    try {
      const { headers } = await send({ method: 'HEAD', key })
      return Number(headers['content-length'] ?? 0)
    } catch (error) {
      if (isNotFound(error)) return null
      throw error
    }
  }

  return {
    patience,
    presign: client.presign,
    isAnswering: client.isAnswering,
    stats: client.stats,
    sizeOf,
    async put(key, sendable, { signal, mustBeNew = false } = {}) {
      const headers = { ...toBodyHeaders(sendable), ...(mustBeNew && { 'if-none-match': '*' }) }
      await send({ method: 'PUT', key, headers, body: () => sendable.body(), ...(signal && { signal }) })
    },
    async get(key, range, signal) {
      const headers = { ...UNSIGNED, ...(range !== null && { range }) }
      const answer = await client.stream({ method: 'GET', key, headers, ...(signal && { signal }) })
      return { body: answer.body, sizeBytes: Number(answer.headers['content-length'] ?? Number.NaN) }
    },
    async read(key) {
      try {
        return (await send({ method: 'GET', key })).body
      } catch (error) {
        if (isNotFound(error)) return null
        throw error
      }
    },
    async remove(key) {
      await send({ method: 'DELETE', key }).catch((error: unknown) => {
        // Others answer so where the first service answers 204.
        if (!isNotFound(error)) throw error
      })
    },
    async *list(prefix) {
      let after: string | null = null
      do {
        const query: Record<string, string> = { 'list-type': '2', prefix }
        if (after !== null) query['continuation-token'] = after
        const { body } = await send({ method: 'GET', key: null, query })
        const xml = body.toString()
        yield blocksOf(xml, 'Contents').map((inside) => ({
          key: textsOf(inside, 'Key')[0] ?? '',
          sizeBytes: Number(textsOf(inside, 'Size')[0] ?? 0),
        }))
        after = textsOf(xml, 'IsTruncated')[0] === 'true' ? (textsOf(xml, 'NextContinuationToken')[0] ?? null) : null
      } while (after !== null)
    },
    ...createUploads(client, patience, sizeOf),
  }
}

type Uploads = Pick<
  Bucket,
  'beginUpload' | 'putPart' | 'listParts' | 'completeUpload' | 'abandonUpload' | 'listUploads'
>

/** Objects that are sent in parts. */
function createUploads(client: S3Client, patience: Patience, sizeOf: Bucket['sizeOf']): Uploads {
  const send = (request: S3Request) => patience.run(() => client.send(request), request.signal)
  return {
    async beginUpload(key, { isOurs } = { isOurs: true }) {
      const headers = { ...UNSIGNED, ...(isOurs && { 'x-amz-checksum-algorithm': 'CRC32' }) }
      const { body } = await send({ method: 'POST', key, query: { uploads: '' }, headers })
      const [uploadId] = textsOf(body.toString(), 'UploadId')
      if (uploadId === undefined) throw new S3Error('an upload was begun without an id', { status: 200, code: 'NoId' })
      return uploadId
    },
    async putPart(key, { uploadId, number }, part, signal) {
      const query = { partNumber: String(number), uploadId }
      const headers = toBodyHeaders(part)
      const { headers: answered } = await send({
        method: 'PUT',
        key,
        query,
        headers,
        body: () => part.body(),
        ...(signal && { signal }),
      })
      return { number, etag: String(answered.etag ?? ''), checksum: part.checksum }
    },
    async listParts(key, uploadId) {
      const parts: ListedPart[] = []
      let after: string | null = ''
      while (after !== null) {
        const query: Record<string, string> = { uploadId, ...(after !== '' && { 'part-number-marker': after }) }
        const xml: string = (await send({ method: 'GET', key, query })).body.toString()
        parts.push(...blocksOf(xml, 'Part').map(toListedPart))
        const [marker = ''] = textsOf(xml, 'NextPartNumberMarker')
        after = textsOf(xml, 'IsTruncated')[0] === 'true' && marker !== '' ? marker : null
      }
      return parts
    },
    async completeUpload(key, uploadId, { parts, sizeBytes }) {
      const xml = toCompletion(parts)
      const how = { method: 'POST', query: { uploadId }, headers: XML, answerMs: COMPLETE_MS } as const
      const request: S3Request = { ...how, key, body: () => xml }
      try {
        await patience.run(async () => {
          const { body } = await client.send(request)
          // The service keeps the connection alive with blanks while it works, and may fail after it has said 200.
          const text = body.toString()
          if (text.trim() !== '' && !/<Error[\s>]/.test(text)) return
          const [code = 'InternalError'] = textsOf(text, 'Code')
          throw new S3Error(`an upload could not be completed: ${code}`, { status: 500, code })
        })
      } catch (error) {
        // An upload that is gone was completed by a try whose answer was lost, if the object is there.
        const wasDone = hasS3Code(error, 'NoSuchUpload', '404') && (await sizeOf(key)) === sizeBytes
        if (!wasDone) throw error
      }
    },
    async abandonUpload(key, uploadId) {
      await send({ method: 'DELETE', key, query: { uploadId } }).catch((error: unknown) => {
        if (!isNotFound(error)) throw error
      })
    },
    async *listUploads(prefix) {
      let after: Record<string, string> | null = {}
      while (after !== null) {
        const query: Record<string, string> = { uploads: '', prefix, ...after }
        const xml = (await send({ method: 'GET', key: null, query })).body.toString()
        yield blocksOf(xml, 'Upload').map((inside) => ({
          key: textsOf(inside, 'Key')[0] ?? '',
          uploadId: textsOf(inside, 'UploadId')[0] ?? '',
          begunAt: new Date(textsOf(inside, 'Initiated')[0] ?? 0),
        }))
        const [keyMarker = '', idMarker = ''] = [
          textsOf(xml, 'NextKeyMarker')[0],
          textsOf(xml, 'NextUploadIdMarker')[0],
        ]
        const hasMore = textsOf(xml, 'IsTruncated')[0] === 'true' && keyMarker !== ''
        after = hasMore ? { 'key-marker': keyMarker, 'upload-id-marker': idMarker } : null
      }
    },
  }
}

function toListedPart(inside: string): ListedPart {
  return {
    number: Number(textsOf(inside, 'PartNumber')[0] ?? 0),
    etag: textsOf(inside, 'ETag')[0] ?? '',
    checksum: textsOf(inside, 'ChecksumCRC32')[0] ?? null,
    sizeBytes: Number(textsOf(inside, 'Size')[0] ?? 0),
  }
}

function toBodyHeaders({ sizeBytes, checksum }: Sendable): Readonly<Record<string, string>> {
  return { ...UNSIGNED, 'content-length': String(sizeBytes), 'x-amz-checksum-crc32': checksum }
}

function toCompletion(parts: readonly UploadedPart[]): string {
  const items = parts.map(
    ({ number, etag, checksum }) =>
      `<Part><PartNumber>${number}</PartNumber><ETag>${escapeXml(etag)}</ETag>${toChecksumElement(checksum)}</Part>`,
  )
  return `<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${items.join('')}</CompleteMultipartUpload>`
}

function toChecksumElement(checksum: string | null): string {
  return checksum === null ? '' : `<ChecksumCRC32>${checksum}</ChecksumCRC32>`
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}

interface Patience {
  /** The answer of the first try that succeeds; else the last error. */
  run<Result>(operation: () => Promise<Result>, signal?: AbortSignal): Promise<Result>
  /** Whether one more request may be spent on something that is already under way; if so, it is. */
  spend(): boolean
  /** The pauses between such requests. */
  newBackoff(): Backoff
}

export interface PatienceOptions {
  readonly maxTries?: number
  readonly firstPauseMs?: number
  readonly maxPauseMs?: number
  /** No try begins later than this after the first. */
  readonly maxTimeMs?: number
  readonly budget?: number
  readonly random?: () => number
  /** In milliseconds; never goes back. */
  readonly now?: () => number
}

const PER_SUCCESS = 0.1

/**
 * How often a request to the storage is tried. Each has a few tries with growing, jittered pauses; all together have a budget of
 * retries that successes fill up again, so that storage in trouble is not asked several times as much as storage in health.
 */
function createPatience(options: PatienceOptions = {}): Patience {
  const { maxTries = 4, firstPauseMs = 100, maxPauseMs = 1600, maxTimeMs = 15_000, budget = 50 } = options
  const { random = Math.random, now = () => performance.now() } = options
  let left = budget

  function spend(): boolean {
    if (left < 1) return false
    left -= 1
    return true
  }

  const newBackoff = () => createBackoff({ firstMs: firstPauseMs, maxMs: maxPauseMs, random })

  return {
    spend,
    newBackoff,
    async run(operation, signal) {
      const backoff = newBackoff()
      const begunAt = now()
      for (let tries = 1; ; tries++) {
        try {
          const result = await operation()
          left = Math.min(budget, left + PER_SUCCESS)
          return result
        } catch (error) {
          const isLast = tries >= maxTries || now() - begunAt > maxTimeMs || isOver(signal)
          if (isLast || !mayPass(error) || !spend()) throw error
          await sleep(backoff.nextMs(), signal)
          if (isOver(signal)) throw error
        }
      }
    },
  }
}

function isOver(signal: AbortSignal | undefined): boolean {
  return signal?.aborted ?? false
}

/**
 * S3-compatible storage in memory, strict where services are: it checks signatures (also of addresses that were given away), the
 * clock, checksums, sizes of parts and conditions. Tests break it on purpose by its switches.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { checkSignature, type KnownKeys, SIGNATURE_FAULTS } from './check-signature.ts'
import { type S3Fault, type S3Operation, UNAVAILABLE } from './s3-faults.ts'
import { checkBody, collect, etagOf, keepAlive, operationOf, refuse, sip, toXml, xml } from './s3-wire.ts'

interface PlannedFault {
  readonly operation: S3Operation
  readonly fault: S3Fault
  left: number
}

interface StoredObject {
  readonly bytes: Buffer
  readonly contentType: string
}

interface Upload {
  readonly key: string
  readonly begunAt: Date
  readonly parts: Map<number, { readonly bytes: Buffer; readonly etag: string }>
}

export interface FakeS3 extends AsyncDisposable {
  readonly url: string
  /** What `--blobs` is given. */
  readonly blobsUrl: string
  readonly keys: string
  /** Gives out keys of a session, which the storage takes until then; it forgets no others. */
  issue(expiresAt: Date): KnownKeys & { readonly token: string }
  readonly bucket: string
  /** '' or ending with a slash. */
  readonly prefix: string
  readonly objects: Map<string, StoredObject>
  readonly uploads: Map<string, Upload>
  /** Every request that came, by operation. */
  readonly asked: S3Operation[]
  /** Everything is refused with 503. */
  isDown: boolean
  /** How far its clock is ahead of ours. */
  skewMs: number
  /** The next requests of this kind meet the fault. */
  fail(operation: S3Operation, fault: S3Fault, times?: number): void
}

interface FakeOptions {
  readonly bucket?: string
  readonly prefix?: string
  readonly region?: string
  readonly pageSize?: number
  readonly port?: number
}

const ID = 'AKIDEXAMPLE'
const SECRET = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY'
const MIN_PART_BYTES = 5 * 1024 * 1024

export async function startFakeS3(options: FakeOptions = {}): Promise<FakeS3> {
  const { bucket = 'test-bytes', prefix = '', region = 'us-east-1', pageSize = 1000, port = 0 } = options
  const objects = new Map<string, StoredObject>()
  const uploads = new Map<string, Upload>()
  const planned: PlannedFault[] = []
  const asked: S3Operation[] = []
  const known: KnownKeys[] = [{ id: ID, secret: SECRET, token: null, expiresAt: null }]

  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => {
      if (!response.headersSent) refuse(response, 500, 'InternalError', String(error))
      else response.destroy()
    })
  })
  server.keepAliveTimeout = 30_000
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  const fake: FakeS3 = {
    url,
    blobsUrl: `s3://${bucket}${prefix === '' ? '' : `/${prefix}`}?endpoint=${url}&region=${region}&pathStyle=1`,
    keys: `${ID}:${SECRET}`,
    issue(expiresAt) {
      // Tokens are long, and have every character that base64 has.
      const token = `${randomBytes(300).toString('base64')}+/==`
      const keys = { id: `ASIA${known.length}EXAMPLE`, secret: randomBytes(30).toString('base64'), token, expiresAt }
      known.push(keys)
      return keys
    },
    bucket,
    prefix: prefix === '' ? '' : `${prefix}/`,
    objects,
    uploads,
    asked,
    isDown: false,
    skewMs: 0,
    fail: (operation, fault, times = 1) => void planned.push({ operation, fault, left: times }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }

  function takeFault(operation: S3Operation): S3Fault | null {
    if (fake.isDown) return UNAVAILABLE
    const next = planned.find((each) => each.operation === operation && each.left > 0)
    if (next === undefined) return null
    next.left--
    return next.fault
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const at = new URL(request.url ?? '/', url)
    const now = new Date(Date.now() + fake.skewMs)
    response.setHeader('date', now.toUTCString())
    const operation = operationOf(request.method ?? '', at, bucket)
    if (operation === null) return refuse(response, 501, 'NotImplemented')
    asked.push(operation)
    const fault = takeFault(operation)
    if (fault?.kind === 'stall') await fault.until
    if (fault?.kind === 'status') {
      request.resume()
      return refuse(response, fault.status, fault.code)
    }
    if (fault?.kind === 'cut' && operation !== 'get') return void request.destroy()
    const sent = await (fault?.kind === 'sip' ? sip(request, fault) : collect(request))
    if (fault?.kind === 'damage' && sent.length > 0) sent[0] ^= 1
    const wrong = checkSignature(request, { keys: known, region, now })
    if (wrong === 'AuthorizationHeaderMalformed' || wrong === 'AuthorizationQueryParametersError')
      return refuse(response, SIGNATURE_FAULTS[wrong], wrong, '', `<Region>${region}</Region>`)
    if (wrong !== null) return refuse(response, SIGNATURE_FAULTS[wrong], wrong)
    const damage = checkBody(request, sent)
    if (damage !== null) return refuse(response, 400, damage)
    if (at.pathname.split('/')[1] !== bucket) return refuse(response, 404, 'NoSuchBucket')
    const answer = toAnswer(operation, {
      request,
      at,
      sent,
      key: decodeURIComponent(at.pathname.slice(bucket.length + 2)),
    })
    if (fault?.kind === 'lose_answer') return void request.socket.destroy()
    if (answer.status >= 400) return refuse(response, answer.status, answer.code ?? String(answer.status))
    if (fault?.kind === 'keep_alive') return keepAlive(response, answer.body ?? Buffer.alloc(0), fault)
    response.writeHead(answer.status, answer.headers)
    if (operation === 'head' || answer.body === undefined) return void response.end()
    if (operation === 'get' && fault?.kind === 'cut') {
      response.write(answer.body.subarray(0, Math.ceil(answer.body.length / 2)), () => response.destroy())
      return
    }
    const isDamaged = operation === 'get' && fault?.kind === 'damage'
    const body = isDamaged ? Buffer.from(answer.body) : answer.body
    if (isDamaged) body[Math.floor(body.length / 2)] ^= 1
    response.end(body)
  }

  interface Asked {
    readonly request: IncomingMessage
    readonly at: URL
    readonly sent: Buffer
    readonly key: string
  }

  interface Answer {
    readonly status: number
    readonly code?: string
    readonly headers?: Record<string, string>
    readonly body?: Buffer
  }

  function toAnswer(operation: S3Operation, call: Asked): Answer {
    return HANDLERS[operation](call)
  }

  const HANDLERS: Record<S3Operation, (call: Asked) => Answer> = {
    put({ request, sent, key }) {
      if (request.headers['if-none-match'] === '*' && objects.has(key))
        return { status: 412, code: 'PreconditionFailed' }
      objects.set(key, { bytes: sent, contentType: request.headers['content-type'] ?? 'binary/octet-stream' })
      return { status: 200, headers: { etag: etagOf(sent) } }
    },
    get: (call) => read(call),
    head(call) {
      const answer = read(call)
      return answer.status >= 400 ? answer : { ...answer, body: Buffer.alloc(0) }
    },
    delete({ key }) {
      objects.delete(key)
      return { status: 204 }
    },
    list({ at }) {
      const query = at.searchParams
      const after = query.get('continuation-token') ?? ''
      const keys = [...objects.keys()].filter((key) => key.startsWith(query.get('prefix') ?? '') && key > after).sort()
      const page = keys.slice(0, pageSize)
      const items = page.map(
        (key) => `<Contents><Key>${toXml(key)}</Key><Size>${objects.get(key)?.bytes.length ?? 0}</Size></Contents>`,
      )
      const isCut = keys.length > page.length
      const next = isCut ? `<NextContinuationToken>${toXml(page.at(-1) ?? '')}</NextContinuationToken>` : ''
      return xml(`<ListBucketResult><IsTruncated>${isCut}</IsTruncated>${next}${items.join('')}</ListBucketResult>`)
    },
    begin_upload({ key }) {
      const id = randomUUID()
      uploads.set(id, { key, begunAt: new Date(Date.now() + fake.skewMs), parts: new Map() })
      return xml(`<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`)
    },
    put_part({ at, sent, key }) {
      const upload = uploads.get(at.searchParams.get('uploadId') ?? '')
      if (upload?.key !== key) return { status: 404, code: 'NoSuchUpload' }
      const number = Number(at.searchParams.get('partNumber'))
      if (!(number >= 1 && number <= 10_000)) return { status: 400, code: 'InvalidArgument' }
      const etag = etagOf(sent)
      upload.parts.set(number, { bytes: sent, etag })
      return { status: 200, headers: { etag } }
    },
    complete_upload({ at, sent, key }) {
      const id = at.searchParams.get('uploadId') ?? ''
      const upload = uploads.get(id)
      if (upload?.key !== key) return { status: 404, code: 'NoSuchUpload' }
      const named = [...sent.toString().matchAll(/<PartNumber>(\d+)<\/PartNumber><ETag>(.*?)<\/ETag>/g)]
      const parts = named.map(([, number, etag]) => {
        const part = upload.parts.get(Number(number))
        return part !== undefined && part.etag === etag.replaceAll('&quot;', '"') ? part : null
      })
      const isOrdered = named.every(([, number], index) => index === 0 || Number(number) > Number(named[index - 1][1]))
      if (parts.length === 0 || parts.includes(null) || !isOrdered) return { status: 400, code: 'InvalidPart' }
      if (parts.slice(0, -1).some((part) => (part?.bytes.length ?? 0) < MIN_PART_BYTES))
        return { status: 400, code: 'EntityTooSmall' }
      const bytes = Buffer.concat(parts.map((part) => part?.bytes ?? Buffer.alloc(0)))
      objects.set(key, { bytes, contentType: 'binary/octet-stream' })
      uploads.delete(id)
      return xml(`<CompleteMultipartUploadResult><Key>${toXml(key)}</Key></CompleteMultipartUploadResult>`)
    },
    abort_upload({ at }) {
      return uploads.delete(at.searchParams.get('uploadId') ?? '')
        ? { status: 204 }
        : { status: 404, code: 'NoSuchUpload' }
    },
    list_parts({ at, key }) {
      const upload = uploads.get(at.searchParams.get('uploadId') ?? '')
      if (upload?.key !== key) return { status: 404, code: 'NoSuchUpload' }
      const after = Number(at.searchParams.get('part-number-marker') ?? 0)
      const numbers = [...upload.parts.keys()].sort((a, b) => a - b).filter((number) => number > after)
      const page = numbers.slice(0, pageSize)
      const items = page.map((number) => {
        const { bytes, etag } = upload.parts.get(number) ?? { bytes: Buffer.alloc(0), etag: '' }
        return `<Part><PartNumber>${number}</PartNumber><ETag>${toXml(etag)}</ETag><Size>${bytes.length}</Size></Part>`
      })
      const isCut = numbers.length > page.length
      const next = isCut ? `<NextPartNumberMarker>${page.at(-1)}</NextPartNumberMarker>` : ''
      return xml(`<ListPartsResult><IsTruncated>${isCut}</IsTruncated>${next}${items.join('')}</ListPartsResult>`)
    },
    list_uploads({ at }) {
      const prefixed = [...uploads].filter(([, { key }]) => key.startsWith(at.searchParams.get('prefix') ?? ''))
      const items = prefixed.map(
        ([id, { key, begunAt }]) =>
          `<Upload><Key>${toXml(key)}</Key><UploadId>${id}</UploadId><Initiated>${begunAt.toISOString()}</Initiated></Upload>`,
      )
      return xml(
        `<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>${items.join('')}</ListMultipartUploadsResult>`,
      )
    },
  }

  function read({ request, at, key }: Asked): Answer {
    const object = objects.get(key)
    if (object === undefined) return { status: 404, code: 'NoSuchKey' }
    const query = at.searchParams
    const headers: Record<string, string> = {
      etag: etagOf(object.bytes.subarray(0, 16)),
      'content-type': query.get('response-content-type') ?? object.contentType,
      'accept-ranges': 'bytes',
      'content-length': String(object.bytes.length),
    }
    const disposition = query.get('response-content-disposition')
    if (disposition !== null) headers['content-disposition'] = disposition
    const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '')
    if (range === null) return { status: 200, headers, body: object.bytes }
    const start = Number(range[1])
    const end = Math.min(range[2] === '' ? Number.POSITIVE_INFINITY : Number(range[2]), object.bytes.length - 1)
    if (start > end) return { status: 416, code: 'InvalidRange' }
    headers['content-range'] = `bytes ${start}-${end}/${object.bytes.length}`
    headers['content-length'] = String(end - start + 1)
    return { status: 206, headers, body: object.bytes.subarray(start, end + 1) }
  }

  return fake
}

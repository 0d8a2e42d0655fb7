/** The words of the protocol tus 1.0 in requests: its version, its counts, and the bytes of a body with or without a checksum. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { inOneChunk } from '../../../../lib/files/in-one-chunk.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { freeBytes } from '../../kit/bodies/gather-body.ts'
import { readBodyBytes } from '../../kit/bodies/json-body.ts'

export const TUS_VERSION = '1.0.0'
export const TUS_EXTENSIONS = 'creation,creation-with-upload,termination,expiration,checksum'
export const CHECKSUMS = ['sha1', 'sha256', 'md5'] as const
const PART = 'application/offset+octet-stream'
// Such a body is held in memory until it has been compared: nothing that was damaged on its way touches the upload.
const MAX_CHECKED_BYTES = 16 * 1024 * 1024
const CHECKED_MS = 600_000
const COUNT = /^\d{1,15}$/

/** "The server MUST respond with 412 and Tus-Version" to another version; every answer names the version. */
export function mustSpeakTus(request: FastifyRequest, reply: FastifyReply): void {
  reply.header('Tus-Resumable', TUS_VERSION)
  if (request.headers['tus-resumable'] === TUS_VERSION) return
  reply.header('Tus-Version', TUS_VERSION)
  throw new ServiceError('unsupported_version', `send Tus-Resumable: ${TUS_VERSION}; no other version is spoken here`)
}

export function readCount(request: FastifyRequest, name: string): number {
  const text = request.headers[name.toLowerCase()]
  if (typeof text === 'string' && COUNT.test(text)) return Number(text)
  throw new ServiceError('invalid_request', `${name} must be a whole number of bytes`)
}

export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

interface PartBody extends Disposable {
  readonly source: AsyncIterable<Uint8Array>
}

/** The bytes of a part. With a checksum they are read and compared first. */
export async function readPart(request: IncomingMessage): Promise<PartBody> {
  if (request.headers['content-type']?.trim().toLowerCase() !== PART)
    throw new ServiceError('unsupported_media_type', `send the bytes with Content-Type: ${PART}`)
  const checksum = request.headers['upload-checksum']
  if (checksum === undefined) return { source: chunksOf(request), [Symbol.dispose]() {} }
  const check = readChecksum(String(checksum))
  const bytes = await readBodyBytes(request, { maxBytes: MAX_CHECKED_BYTES, deadlineMs: CHECKED_MS })
  if (!check(bytes)) {
    freeBytes(bytes)
    throw new ServiceError('checksum_mismatch', 'the bytes are not those of Upload-Checksum; send them again')
  }
  return { source: inOneChunk(bytes), [Symbol.dispose]: () => freeBytes(bytes) }
}

function readChecksum(text: string): (bytes: Uint8Array) => boolean {
  const [name = '', sum = ''] = text.trim().split(/ +/)
  const algorithm = CHECKSUMS.find((known) => known === name)
  if (algorithm === undefined || sum === '')
    throw new ServiceError(
      'invalid_request',
      `Upload-Checksum must be one of ${CHECKSUMS.join(', ')} and a sum in base64`,
    )
  const expected = Buffer.from(sum, 'base64')
  return (bytes) => {
    const found = createHash(algorithm).update(bytes).digest()
    return found.length === expected.length && timingSafeEqual(found, expected)
  }
}

/** Whoever stops in the middle leaves the connection alone: an answer has still to go out on it. */
async function* chunksOf(request: IncomingMessage): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false })) yield chunk as Buffer
  } catch (cause) {
    const message = 'the request ended before its body was complete; what came of it is kept'
    throw new ServiceError('invalid_request', message, { cause })
  }
}

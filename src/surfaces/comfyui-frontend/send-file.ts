/**
 * Sends a file of a served folder. A name with a digest in it never stands for other bytes, so a browser may keep it for ever; of any
 * other it asks whether it has changed. Text is compressed when it is first asked for, and the result is kept within a bound.
 */
import { createReadStream } from 'node:fs'
import { readFile, realpath, stat } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { BoundedMap } from '../../../lib/bounded-map.ts'
import { typeFromName } from '../../../lib/files/mime.ts'
import { ServiceError } from '../../domain/errors.ts'
import { acceptsEncoding, matchesEtag, quoteDigest, readRange } from '../kit/content/send-content.ts'

type SendFile = (request: FastifyRequest, reply: FastifyReply, file: ServedFile) => Promise<FastifyReply>

/** What pages are made of and assets of jobs are not. */
const PAGE_TYPES: Readonly<Record<string, string>> = {
  woff2: 'font/woff2',
  woff: 'font/woff',
  ttf: 'font/ttf',
  otf: 'font/otf',
  eot: 'application/vnd.ms-fontobject',
  wasm: 'application/wasm',
  map: 'application/json',
}
const COMPRESSIBLE = /^(?:text\/|application\/(?:json|xml|wasm|vnd\.ms-fontobject)|image\/svg|font\/ttf)/
const MIN_COMPRESSED_BYTES = 1024
// One turn of a helper thread; larger files are sent as they are.
const MAX_COMPRESSED_BYTES = 8 * 1024 * 1024
// The whole editor takes about 7 MiB compressed; templates come on top.
const MAX_KEPT_FILES = 2000
const MAX_KEPT_BYTES = 48 * 1024 * 1024

const NAME_WITH_DIGEST = /-[\w-]{8}\.[a-z0-9]{2,5}(?:\.map)?$/
const FOR_EVER = 'public, max-age=31536000, immutable'

const compress = promisify(gzip)

export function createSendFile(): SendFile {
  const compressed = createCompressed()

  return async (request, reply, file) => {
    const etag = quoteDigest(`${Math.trunc(file.modifiedMs).toString(36)}-${file.sizeBytes.toString(36)}`)
    const type = contentTypeOf(file.name)
    reply.headers({
      'Cache-Control': NAME_WITH_DIGEST.test(file.name) ? FOR_EVER : 'no-cache',
      'Content-Type': type,
      // The same for all encodings of a file, so it is a weak one.
      ETag: `W/${etag}`,
      Vary: 'Accept-Encoding',
    })
    if (matchesEtag(request.headers['if-none-match'], etag)) return reply.code(304).removeHeader('content-type').send()
    const { range, 'accept-encoding': accepted } = request.headers
    if (range === undefined && isWorthCompressing(type, file) && acceptsEncoding('gzip', accepted))
      return reply.header('Content-Encoding', 'gzip').send(await compressed(file))
    return sendPlain(request, reply, file)
  }
}

function isWorthCompressing(type: string, { sizeBytes }: ServedFile): boolean {
  return COMPRESSIBLE.test(type) && sizeBytes >= MIN_COMPRESSED_BYTES && sizeBytes <= MAX_COMPRESSED_BYTES
}

function sendPlain(request: FastifyRequest, reply: FastifyReply, file: ServedFile): FastifyReply {
  const { sizeBytes } = file
  reply.header('Accept-Ranges', 'bytes')
  const range = readRange(request.headers.range, sizeBytes)
  if (range.kind === 'unsatisfiable') {
    reply.header('Content-Range', `bytes */${sizeBytes}`)
    throw new ServiceError('range_not_satisfiable', `the range is outside of the ${sizeBytes} bytes of this file`)
  }
  const span = range.kind === 'part' ? range.span : undefined
  reply.header('Content-Length', String(span === undefined ? sizeBytes : span.end - span.start + 1))
  if (span !== undefined) reply.code(206).header('Content-Range', `bytes ${span.start}-${span.end}/${sizeBytes}`)
  if (request.method === 'HEAD' || sizeBytes === 0) return reply.send()
  return reply.send(createReadStream(file.path, { ...span }))
}

/** Requests for one file share one piece of work. */
function createCompressed(): (file: ServedFile) => Promise<Buffer> {
  const kept = new BoundedMap<string, Promise<Buffer>>(MAX_KEPT_FILES)
  let keptBytes = 0
  return (file) => {
    const key = `${file.modifiedMs} ${file.sizeBytes} ${file.path}`
    const known = kept.get(key)
    if (known !== undefined) return known
    const made = readFile(file.path).then((bytes) => compress(bytes))
    kept.set(key, made)
    made.then(
      ({ length }) => {
        keptBytes += length
        if (keptBytes <= MAX_KEPT_BYTES) return
        // Rare, and what is still in use is compressed again.
        kept.clear()
        keptBytes = 0
      },
      () => kept.delete(key),
    )
    return made
  }
}

function contentTypeOf(name: string): string {
  const extension = name.slice(name.lastIndexOf('.') + 1).toLowerCase()
  const type = Object.hasOwn(PAGE_TYPES, extension)
    ? PAGE_TYPES[extension]
    : (typeFromName(name) ?? 'application/octet-stream')
  return type.startsWith('text/') || type === 'application/json' ? `${type}; charset=utf-8` : type
}

/**
 * A folder of the user's whose files anybody may read. What an address names is looked up by its segments, one by one: none may begin
 * with a dot or lead anywhere else, and a link that leads out of the folder is not followed. What is not a plain file is not there.
 */
export interface ServedFile {
  /** Absolute, without links. */
  readonly path: string
  readonly name: string
  readonly sizeBytes: number
  readonly modifiedMs: number
}

export interface ServedFolder {
  readonly directory: string
  /** `address`: what follows the folder's own address, without a leading slash and as it was sent. */
  find(address: string): Promise<ServedFile | null>
}

const MAX_ADDRESS_LENGTH = 1024
// A dot at the beginning hides files and names parents; the others mean something to one system or another.
const UNSAFE_SEGMENT = /^$|^\.|[\\:\p{Cc}]/u
const ABSENT = ['ENOENT', 'ENOTDIR', 'ELOOP', 'EACCES', 'ENAMETOOLONG', 'EINVAL']

export function createServedFolder(directory: string): ServedFolder {
  return {
    directory,
    async find(address) {
      const segments = readSegments(address)
      if (segments === null) return null
      try {
        const root = await realpath(directory)
        const found = await realpath(path.join(root, ...segments))
        if (!found.startsWith(root.endsWith(path.sep) ? root : root + path.sep)) return null
        const facts = await stat(found)
        if (!facts.isFile()) return null
        return { path: found, name: path.basename(found), sizeBytes: facts.size, modifiedMs: facts.mtimeMs }
      } catch (error) {
        if (ABSENT.includes((error as NodeJS.ErrnoException).code ?? '')) return null
        throw error
      }
    },
  }
}

/** Of several folders the first that has the file. */
export async function findInAny(folders: readonly ServedFolder[], address: string): Promise<ServedFile | null> {
  for (const folder of folders) {
    const found = await folder.find(address)
    if (found !== null) return found
  }
  return null
}

function readSegments(address: string): readonly string[] | null {
  if (address.length > MAX_ADDRESS_LENGTH) return null
  try {
    const segments = decodeURIComponent(address).split('/')
    return segments.some((segment) => UNSAFE_SEGMENT.test(segment)) ? null : segments
  } catch {
    return null
  }
}

/**
 * The files of the console's page, and of the page that a shared endpoint has, as they were built: names with a digest in them, so that a
 * browser may keep them for ever, each also compressed. They lie in memory, a few hundred kilobytes. A build that replaces them while the
 * service runs is seen at the next page.
 */
import { readFileSync, statSync } from 'node:fs'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { uptimeMs } from '../../../../lib/clock.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { acceptsEncoding, matchesEtag, quoteDigest } from './send-content.ts'

const FOR_EVER = 'public, max-age=31536000, immutable'

export interface PageBuild {
  /** Names the build; another one means that the page should be loaded again. */
  readonly id: string
  readonly script: string
  /** Scripts that the first one needs before it can begin. */
  readonly needed: readonly string[]
  readonly style: string
  readonly icon: string
  /** The page of a shared endpoint: one script and one style sheet. */
  readonly share: SharePageBuild
  /** By name. */
  readonly files: ReadonlyMap<string, PageFile>
}

interface SharePageBuild {
  readonly script: string
  readonly style: string
}

interface PageFile {
  readonly contentType: string
  readonly plain: Buffer
  readonly gzip: Buffer | null
  readonly brotli: Buffer | null
}

interface Manifest {
  readonly build: string
  readonly script: string
  readonly needed: readonly string[]
  readonly style: string
  readonly icon: string
  readonly share: SharePageBuild
  readonly files: Readonly<Record<string, { readonly type: string; readonly compressed: boolean }>>
}

// Pages and streams ask all the time; a new build may be seen a moment later.
const LOOK_MS = 1000
const DIRECTORY = new URL('../../../../console/dist/', import.meta.url)

export interface PageFiles {
  /** null: the page was never built. */
  current(): PageBuild | null
}

export function openPageFiles(directory: URL = DIRECTORY): PageFiles {
  const manifestUrl = new URL('manifest.json', directory)
  let seen = ''
  let build: PageBuild | null = null
  let nextLookAt = Number.NEGATIVE_INFINITY

  function look(): void {
    const stat = statSync(manifestUrl, { throwIfNoEntry: false })
    const mark = stat === undefined ? '' : `${stat.mtimeMs} ${stat.size}`
    if (mark === seen) return
    build = stat === undefined ? null : readBuild(directory, manifestUrl)
    seen = mark
  }

  return {
    current() {
      const now = uptimeMs()
      if (now < nextLookAt) return build
      nextLookAt = now + LOOK_MS
      try {
        look()
      } catch {
        // In the middle of another build: the one that is known stays until the next look.
      }
      return build
    },
  }
}

function readBuild(directory: URL, manifestUrl: URL): PageBuild {
  const manifest = JSON.parse(readFileSync(manifestUrl, 'utf8')) as Manifest
  const files = Object.entries(manifest.files).map(([name, { type, compressed }]) => {
    const read = (ending: string) => readFileSync(new URL(name + ending, directory))
    const file: PageFile = {
      contentType: type,
      plain: read(''),
      gzip: compressed ? read('.gz') : null,
      brotli: compressed ? read('.br') : null,
    }
    return [name, file] as const
  })
  const { script, needed, style, icon, share } = manifest
  return { id: manifest.build, script, needed, style, icon, share, files: new Map(files) }
}

/** A name contains a digest of the content, so browsers may cache the file forever. */
export function sendPageFile(
  request: FastifyRequest,
  reply: FastifyReply,
  files: PageFiles,
  name: string,
): FastifyReply {
  const file = files.current()?.files.get(name)
  if (file === undefined) throw new ServiceError('not_found', 'there is no such file')
  const etag = quoteDigest(name)
  reply.headers({ 'Cache-Control': FOR_EVER, ETag: etag, Vary: 'Accept-Encoding', 'Content-Type': file.contentType })
  if (matchesEtag(request.headers['if-none-match'], etag)) return reply.code(304).send()
  const { encoding, bytes } = choose(file, request.headers['accept-encoding'])
  if (encoding !== null) reply.header('Content-Encoding', encoding)
  return reply.send(bytes)
}

function choose(file: PageFile, accepted: string | string[] | undefined) {
  if (file.brotli !== null && acceptsEncoding('br', accepted)) return { encoding: 'br', bytes: file.brotli }
  if (file.gzip !== null && acceptsEncoding('gzip', accepted)) return { encoding: 'gzip', bytes: file.gzip }
  return { encoding: null, bytes: file.plain }
}

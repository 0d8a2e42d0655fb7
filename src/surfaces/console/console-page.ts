/** The one HTML page of the console with its files and refusals, and the policy under which a browser runs it: our own files, nothing inline, no markup from text. */
import { readFileSync, statSync } from 'node:fs'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { uptimeMs } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import { ServiceError } from '../../domain/errors.ts'
import { createErrorBoundary, DEFECT_MESSAGE, REFUSAL_STATUS, toRetryAfter } from '../kit/answer-errors.ts'
import { acceptsEncoding, matchesEtag, quoteDigest } from '../kit/content/send-content.ts'
import { mustNameNoDeployment } from '../kit/guards/addresses.ts'
import { PUBLIC_PAGE, serviceAddressOf } from '../kit/guards/routes.ts'
import type { AnswerError, ErrorAnswer } from '../kit/surface.ts'

/** How the page looks; `auto`: as the system does. The choice is a plain cookie, so that the first paint is right already. */
const THEMES = ['auto', 'light', 'dark'] as const
type Theme = (typeof THEMES)[number]

export const CONSOLE_PATH = '/console'
const THEME_COOKIE = 'atelier-theme'
const FOR_EVER = 'public, max-age=31536000, immutable'

export function toPolicy(contentOrigins: readonly string[]): string {
  const media = ['self', ...contentOrigins].map((source) => (source === 'self' ? "'self'" : source)).join(' ')
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    `img-src ${media} blob: data:`,
    `media-src ${media} blob:`,
    "font-src 'self'",
    `connect-src ${media}`,
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')
}

const PAGE_HEADERS = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Permissions-Policy':
    'accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), magnetometer=(), microphone=(), midi=(), payment=(), usb=()',
} as const

function readTheme(cookies: string | undefined): Theme {
  const value = new RegExp(`(?:^|;\\s*)${THEME_COOKIE}=(\\w+)`).exec(cookies ?? '')?.[1]
  return THEMES.find((theme) => theme === value) ?? 'auto'
}

/** What the page shows until it knows who is here; its script draws the same. */
const FRAME = '<div class="shell" aria-busy="true"><div class="nav"><span class="brand">Atelier</span></div></div>'

/** `base`: what stands before every address of ours, made of letters that need no escape. */
function renderConsolePage({ build, base, theme }: { build: PageBuild; base: string; theme: Theme }): string {
  const at = (name: string) => `${base}/console/files/${name}`
  return `<!doctype html>
<html lang="en" data-theme="${theme}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="atelier-base" content="${base}">
<meta name="atelier-build" content="${build.id}">
<title>Atelier</title>
<link rel="icon" href="${at(build.icon)}" type="image/svg+xml">
<link rel="stylesheet" href="${at(build.style)}">
${build.needed.map((name) => `<link rel="modulepreload" href="${at(name)}">\n`).join('')}<script type="module" src="${at(build.script)}"></script>
</head>
<body>
<div id="app">${FRAME}</div>
<noscript>The console needs JavaScript. The API does not: see ${base}/docs.</noscript>
</body>
</html>
`
}

/**
 * The files of the page as they were built: names with a digest in them, so that a browser may keep them for ever, each also
 * compressed. They lie in memory, a few hundred kilobytes. A build that replaces them while the service runs is seen at the next page.
 */
interface PageBuild {
  /** Names the build; another one means that the page should be loaded again. */
  readonly id: string
  readonly script: string
  /** Scripts that the first one needs before it can begin. */
  readonly needed: readonly string[]
  readonly style: string
  readonly icon: string
  /** By name. */
  readonly files: ReadonlyMap<string, PageFile>
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
  readonly files: Readonly<Record<string, { readonly type: string; readonly compressed: boolean }>>
}

// Pages and streams ask all the time; a new build may be seen a moment later.
const LOOK_MS = 1000
const DIRECTORY = new URL('../../../console/dist/', import.meta.url)

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
  const { script, needed, style, icon } = manifest
  return { id: manifest.build, script, needed, style, icon, files: new Map(files) }
}

export function registerPage(app: FastifyInstance, files: PageFiles, policy: string): void {
  const sendPage = (request: FastifyRequest, reply: FastifyReply) => {
    const address = serviceAddressOf(request)
    mustNameNoDeployment(address)
    const build = files.current()
    if (build === null) throw new ServiceError('not_found', 'the console is not part of this service')
    const page = renderConsolePage({ build, base: address.mountPrefix, theme: readTheme(request.headers.cookie) })
    return reply
      .headers({ ...PAGE_HEADERS, 'Content-Security-Policy': policy, 'Content-Type': 'text/html; charset=utf-8' })
      .send(page)
  }
  app.get(CONSOLE_PATH, PUBLIC_PAGE, sendPage)
  app.get(`${CONSOLE_PATH}/*`, PUBLIC_PAGE, sendPage)
  app.get(`${CONSOLE_PATH}/files/:name`, PUBLIC_PAGE, (request, reply) => {
    const { name } = request.params as { readonly name: string }
    const file = files.current()?.files.get(name)
    if (file === undefined) throw new ServiceError('not_found', 'there is no such file')
    return sendFile(request, reply, { name, file })
  })
}

/** A name contains a digest of the content, so browsers may cache the file forever. */
function sendFile(request: FastifyRequest, reply: FastifyReply, { name, file }: { name: string; file: PageFile }) {
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

/** Refusals in the console's envelope: the service's own words, the field that they are about, and the request's id. */
export function createConsoleAnswerError(log: Log): AnswerError {
  const answer = createErrorBoundary(log, {
    answerRefusal,
    defect: toAnswer(500, 'internal_error', DEFECT_MESSAGE, null),
  })
  return answer
}

function answerRefusal({ refusal, message, details, retryAfterSeconds }: ServiceError): ErrorAnswer {
  const status = REFUSAL_STATUS[refusal]
  const answer = toAnswer(status, refusal, message, details)
  if (status !== 429 && status !== 503) return answer
  return { ...answer, headers: { ...answer.headers, 'Retry-After': toRetryAfter(retryAfterSeconds) } }
}

function toAnswer(status: number, code: string, message: string, details: ServiceError['details']): ErrorAnswer {
  const body = JSON.stringify({ error: { code, message, details } })
  return { status, headers: { 'Content-Type': 'application/json' }, body }
}

/** The one HTML page of the console with its files and refusals, and the policy under which a browser runs it: our own files, nothing inline, no markup from text. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Log } from '../../../lib/log.ts'
import { ServiceError } from '../../domain/errors.ts'
import { createErrorBoundary, DEFECT_MESSAGE, REFUSAL_STATUS, toRetryAfter } from '../kit/answer-errors.ts'
import { type PageBuild, type PageFiles, sendPageFile } from '../kit/content/page-files.ts'
import { mustNameNoDeployment } from '../kit/guards/addresses.ts'
import { PUBLIC_PAGE, serviceAddressOf } from '../kit/guards/routes.ts'
import type { AnswerError, ErrorAnswer } from '../kit/surface.ts'

/** How the page looks; `auto`: as the system does. The choice is a plain cookie, so that the first paint is right already. */
const THEMES = ['auto', 'light', 'dark'] as const
type Theme = (typeof THEMES)[number]

export const CONSOLE_PATH = '/console'
const THEME_COOKIE = 'atelier-theme'

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
    return sendPageFile(request, reply, files, name)
  })
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

/**
 * Whom a link lets in: whoever has it, from our own page or from none, and from pages of the hosts that its owner listed. It is the only thing of
 * this service that a page of another origin may reach, so a link that lists nobody is as closed to other pages as everything else.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { mayFrame, type Share } from '../../domain/endpoints/shares/share.ts'
import { ServiceError } from '../../domain/errors.ts'
import { ANY_ORIGIN } from '../kit/guards/cors.ts'
import { originRefusal, type ServiceAddress } from '../kit/guards/gate.ts'
import { serviceAddressOf } from '../kit/guards/routes.ts'

export const ALLOWED_ORIGIN = 'Access-Control-Allow-Origin'
const FRAMES: ReadonlySet<string> = new Set(['iframe', 'frame', 'object', 'embed', 'fencedframe'])

/** Throws forbidden_origin. Sets what a page of a listed host needs to read the answer. */
export function admitVisitor(request: FastifyRequest, reply: FastifyReply, share: Share): void {
  const { origin, referer } = request.headers
  const address = serviceAddressOf(request)
  const ownScheme = schemeOf(address)
  void reply.header('vary', 'Origin')
  const isListed = (page: string) => mayFrame(share, page, ownScheme)
  const fetchSite = headerOf(request, 'sec-fetch-site')
  const dest = headerOf(request, 'sec-fetch-dest')
  const isReading = request.method === 'GET' || request.method === 'HEAD'
  if (isReading && headerOf(request, 'sec-fetch-mode') === 'navigate') {
    // What may frame the page is enforced by the browser, too; what does not even load runs nothing.
    const isFramed = dest !== undefined && FRAMES.has(dest) && fetchSite !== 'same-origin' && fetchSite !== 'none'
    const isWelcome = referer === undefined ? share.referrers.length > 0 : isListed(referer)
    if (isFramed && !isWelcome) throw forbidden()
    return
  }
  const page = origin ?? (fetchSite === 'cross-site' ? referer : undefined)
  if (page !== undefined && isListed(page)) {
    if (origin !== undefined) void reply.header(ALLOWED_ORIGIN, origin)
    void reply.header('access-control-expose-headers', 'Retry-After, Content-Range, Accept-Ranges, ETag')
    void reply.header(ANY_ORIGIN[0], ANY_ORIGIN[1])
    return
  }
  if (originRefusal({ host: address.host, origin, fetchSite }, () => false) !== null) throw forbidden()
}

/** For a preflight: which calls a page of a listed host may make. */
export function answerPreflight(request: FastifyRequest, reply: FastifyReply, share: Share): void {
  const { origin } = request.headers
  if (origin === undefined || !mayFrame(share, origin, schemeOf(serviceAddressOf(request)))) throw forbidden()
  void reply.headers({
    vary: 'Origin',
    [ALLOWED_ORIGIN]: origin,
    'access-control-allow-methods': 'GET, HEAD, POST',
    'access-control-allow-headers': 'Content-Type, Idempotency-Key, Range, If-None-Match',
    'access-control-max-age': '600',
  })
}

const schemeOf = ({ origin }: ServiceAddress) => `${origin.slice(0, origin.indexOf(':'))}:`

function headerOf(request: FastifyRequest, name: string): string | undefined {
  const value = request.headers[name]
  return typeof value === 'string' ? value : undefined
}

function forbidden(): ServiceError {
  return new ServiceError(
    'forbidden_origin',
    'pages of this site may not use this link; whoever made it can list the site among its referrers',
  )
}

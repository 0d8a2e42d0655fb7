/**
 * The guards in their order, as functions over a raw request, so that the path in front of the framework and the framework's
 * own hooks share them: which address did the caller use (`addressOf`), may it (`admit`), who is it (`authenticate`), and
 * which headers must the answer carry (`answerHeaders`). They throw refusals and write nothing.
 */

import type { IncomingMessage } from 'node:http'
import { BoundedMap } from '../../../../lib/bounded-map.ts'
import type { Authenticate, Caller, IsWelcome } from '../../../domain/accounts/caller.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { nameCaller } from '../bodies/body-memory.ts'
import { lenientQueryOf, requestIdHeaderNames } from '../request.ts'
import {
  createHostGuard,
  createTrustedProxies,
  type DeploymentAddress,
  type DeploymentHosts,
  deploymentAddressOf,
  type HostParts,
  type IsTrustedProxy,
  type ProxyNetwork,
  readCallerAddress,
  readForwarded,
  readHost,
} from './addresses.ts'
import { ANY_ORIGIN, type Cors, createCors, SAME_ORIGIN_ONLY, SECURITY_HEADERS } from './cors.ts'
import { readSession } from './session-cookie.ts'

export interface GateOptions {
  /** Header name parts, first the canonical one. */
  readonly brands: readonly string[]
  /** The address that we listen on; decides which Host values are safe. */
  readonly bindHost: string
  /** Whether callers must show a credential: decides whether foreign Host names are a danger. */
  readonly hasCredentials: boolean
  readonly authenticate: Authenticate
  /** Finds the caller of a request that shows no credential by the session of its browser; left out: there are no sessions. */
  readonly resume?: (text: string, request: IncomingMessage) => Promise<Caller | null>
  /** The session that a request may use; left out: what the console's page may. */
  readonly sessionOf?: (request: IncomingMessage, address: ServiceAddress) => string | null
  /** Left out: a credential that was accepted once stays good for as long as the service runs. */
  readonly isWelcome?: IsWelcome
  /** Calls the listener when that may have changed for somebody; left out: it never does at a moment that is known. */
  readonly onCredentialsChanged?: (listener: () => void) => () => void
  /** Further Host names without port; `*` allows every name. */
  readonly allowedHosts: readonly string[]
  readonly corsOrigins: readonly string[]
  /** The origin that clients use, such as https://host, for every absolute link; null: whatever the request says. */
  readonly publicUrl: string | null
  /** '' or '/some/prefix': where the routes are served. */
  readonly mountPrefix: string
  /** Networks whose `X-Forwarded-*` we believe. */
  readonly trustedProxies: readonly ProxyNetwork[]
  /** Host names that name a deployment; null: none does. */
  readonly deploymentHosts?: DeploymentHosts | null
}

/** The address of this service as a caller used it. One object per Host value, so that it can key caches. */
export interface ServiceAddress {
  /** Scheme and authority, without a trailing slash. */
  readonly origin: string
  /** '' or '/some/prefix', before every host-relative link. */
  readonly mountPrefix: string
  readonly host: HostParts
  /** The deployment that the address names; null: it names none. */
  readonly deploymentId: string | null
}

export interface Gate {
  readonly mountPrefix: string
  /** Whether callers must show a credential. */
  readonly hasCredentials: boolean
  readonly cors: Cors
  /** Throws invalid_request or forbidden_host. */
  addressOf(request: IncomingMessage): ServiceAddress
  /** Where the caller is, as far as trusted proxies tell it. */
  callerAddressOf(request: IncomingMessage): string
  /** `addressOf`, then the browser guard: throws forbidden_origin as well. */
  admit(request: IncomingMessage): ServiceAddress
  /** Synchronous where the answer is known; throws, or rejects with, unauthorized or rate_limited. */
  authenticate(request: IncomingMessage, rule: CredentialRule): Caller | Promise<Caller>
  /** Asked about once a second for every connection that is held open; it is closed when the answer is no. */
  readonly isWelcome: IsWelcome
  /** Calls the listener when the answer may have changed for some caller, so that its connections end at once instead of within a second. */
  readonly onCredentialsChanged: (listener: () => void) => () => void
  /** What every answer carries, given the caller's `Origin`: name, value, name, value, fit for `writeHead`. */
  answerHeaders(origin: string | undefined, requestId: string): string[]
}

/** Kept on the request, so that one which the hot path hands on to the framework counts only once against its rate. */
const CALLER = Symbol('caller')
type Known = IncomingMessage & { [CALLER]?: Caller | Promise<Caller> }

// Caches must know that an answer depends on who asks, also where this caller gets no CORS headers.
const VARY = ['Vary', 'Origin']
// Bounds what a caller with ever-changing Host values can make us remember.
const ADDRESSES_MAX = 1024
// Room for a cursor and three metadata filters of 512 characters each; one escaped character may take twelve letters.
const URL_MAX_LENGTH = 24_576

export function createGate(options: GateOptions): Gate {
  const requestIdNames = requestIdHeaderNames(options.brands)
  const cors = createCors(options.corsOrigins, options.brands)
  const isTrusted = createTrustedProxies(options.trustedProxies)
  const addressOf = createAddressOf(options, isTrusted)

  function callerAddressOf({ socket, headers }: IncomingMessage): string {
    return readCallerAddress(socket.remoteAddress, headers['x-forwarded-for'], isTrusted)
  }

  function admit(request: IncomingMessage): ServiceAddress {
    const found = addressOf(request)
    const { origin } = request.headers
    const fetchSite = request.headers['sec-fetch-site'] as string | undefined
    const refusal = originRefusal({ host: found.host, origin, fetchSite }, cors.isAllowed)
    if (refusal !== null) throw new ServiceError('forbidden_origin', refusal)
    return found
  }

  function authenticate(request: Known, rule: CredentialRule): Caller | Promise<Caller> {
    const known = request[CALLER]
    if (known !== undefined) return known
    const credential = readCredential(request, rule)
    const session = credential === null && options.resume !== undefined ? sessionOf(request) : null
    const caller = session === null ? options.authenticate(credential) : resume(session, request)
    request[CALLER] = caller
    if (caller instanceof Promise) {
      // The first caller of this function may not await the result; the next one gets the same refusal.
      caller.then(
        ({ accountId }) => nameCaller(request, accountId),
        () => {},
      )
    } else nameCaller(request, caller.accountId)
    return caller
  }

  /** A malformed credential counts as one, too: it is refused instead of falling back to a session. */
  function sessionOf(request: IncomingMessage): string | null {
    const { authorization, cookie, 'x-api-key': key } = request.headers
    if (cookie === undefined || authorization !== undefined || key !== undefined) return null
    const address = addressOf(request)
    return options.sessionOf === undefined
      ? readSession(request, address, 'account')
      : options.sessionOf(request, address)
  }

  async function resume(session: string, request: IncomingMessage): Promise<Caller> {
    return (await options.resume?.(session, request)) ?? options.authenticate(null)
  }

  const common = [...SECURITY_HEADERS, ...(cors.isConfigured ? VARY : [])]
  const forOthers = [...common, ...SAME_ORIGIN_ONLY]
  const forAllowed = [...common, ...ANY_ORIGIN]

  function answerHeaders(origin: string | undefined, requestId: string): string[] {
    const mayRead = origin !== undefined && cors.isAllowed(origin)
    const headers = mayRead ? forAllowed.concat(cors.answerHeaders(origin)) : forOthers.slice()
    for (const name of requestIdNames) headers.push(name, requestId)
    return headers
  }

  const { mountPrefix, hasCredentials, isWelcome = () => true, onCredentialsChanged = () => () => {} } = options
  const welcome = { isWelcome, onCredentialsChanged }
  return {
    mountPrefix,
    hasCredentials,
    cors,
    addressOf,
    callerAddressOf,
    admit,
    authenticate,
    ...welcome,
    answerHeaders,
  }
}

/** What stands before our routes in a path: a proxy's prefix, and the deployment that the path named. */
interface PathStart {
  readonly prefix: string
  readonly named: DeploymentAddress | null
}

/** No proxy is involved and the path names no deployment, as for nearly every request. */
const DIRECT: PathStart = { prefix: '', named: null }

function createAddressOf(options: GateOptions, isTrusted: IsTrustedProxy): Gate['addressOf'] {
  const publicUrl = options.publicUrl === null ? null : new URL(options.publicUrl)
  const ownHosts = publicUrl === null ? options.allowedHosts : [...options.allowedHosts, publicUrl.host]
  const isAllowed = createHostGuard({
    bindHost: options.bindHost,
    hasToken: options.hasCredentials,
    allowedHosts: ownHosts,
  })
  const believesProxies = options.trustedProxies.length > 0
  const addresses = new BoundedMap<string, ServiceAddress>(ADDRESSES_MAX)

  function open(scheme: string, hostText: string, { prefix, named }: PathStart): ServiceAddress {
    const host = readHost(hostText)
    if (host === null) throw new ServiceError('invalid_request', 'the Host header is not a host name')
    const ofHost = options.deploymentHosts?.(host.name) ?? null
    if (ofHost === null && !isAllowed(host.name)) {
      throw new ServiceError(
        'forbidden_host',
        'this host name is not allowed; list it in the allowed hosts to allow it',
      )
    }
    // Host and path each name a deployment: which one is meant cannot be known.
    if (ofHost !== null && named !== null) throw new ServiceError('not_found', 'there is nothing under this address')
    const mountPrefix = prefix + options.mountPrefix + (named?.prefix ?? '')
    // The public address is not the address of a deployment that has a host of its own; only its scheme is the same.
    const ownOrigin = `${publicUrl?.protocol.slice(0, -1) ?? scheme}://${hostText}`
    const origin = publicUrl === null || ofHost !== null ? ownOrigin : publicUrl.origin
    return { origin, mountPrefix, host, deploymentId: ofHost ?? named?.id ?? null }
  }

  function remember(scheme: string, host: string, path: PathStart): ServiceAddress {
    // No header holds a line end, so no Host value looks like one of the longer keys.
    const key = path === DIRECT ? host : `\n${scheme} ${host} ${path.prefix} ${path.named?.prefix ?? ''}`
    const known = addresses.get(key)
    if (known !== undefined) return known
    const made = open(scheme, host, path)
    addresses.set(key, made)
    return made
  }

  return (request) => {
    const url = request.url ?? ''
    // The absolute form would carry a second host beside the header that we check.
    if (url.charCodeAt(0) !== 47 && url !== '*')
      throw new ServiceError('invalid_request', 'the request target must be a path')
    if (url.length > URL_MAX_LENGTH) throw new ServiceError('invalid_request', 'the URL is too long')
    if (hasSecondHost(request.rawHeaders)) {
      throw new ServiceError('invalid_request', 'the Host header may be sent only once')
    }
    const host = request.headers.host ?? ''
    const named = deploymentAddressOf(request)
    if (!believesProxies || !isTrusted(request.socket.remoteAddress)) {
      return remember('http', host, named === null ? DIRECT : { prefix: '', named })
    }
    const forwarded = readForwarded(request.headers)
    return remember(forwarded.scheme ?? 'http', forwarded.host ?? host, { prefix: forwarded.prefix, named })
  }
}

/** Of several Host headers Node shows the first; a proxy in front of us may have gone by the last. */
function hasSecondHost(rawHeaders: readonly string[]): boolean {
  let count = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]
    if (name.length === 4 && name.toLowerCase() === 'host') count++
  }
  return count > 1
}

// Where a request carries its credential. Each surface has its own rule; what a credential is worth is decided elsewhere.

/**
 * `bearer`: only `Authorization: Bearer`. `api_key`: `X-API-Key` wins, else the bearer value. `socket`: the query parameter
 * `token` wins, because a browser cannot set headers on a WebSocket; then as `api_key`.
 */
type CredentialRule = 'bearer' | 'api_key' | 'socket'

const BEARER = /^bearer +([^\s]+) *$/i

/** null when the request carries none, or none that can be read. */
export function readCredential(request: IncomingMessage, rule: CredentialRule): string | null {
  if (rule === 'socket') {
    const token = lenientQueryOf(request.url ?? '').get('token')
    if (token !== null && token !== '') return token
  }
  if (rule !== 'bearer') {
    const key = request.headers['x-api-key']
    if (typeof key === 'string' && key !== '') return key
  }
  const { authorization } = request.headers
  return authorization === undefined ? null : (BEARER.exec(authorization)?.[1] ?? null)
}

/**
 * Refuses requests that a browser sends on behalf of another site. Programs send neither `Origin` nor `Sec-Fetch-Site` and
 * pass; a page of an allow-listed origin passes as well. Says why it refuses, or null.
 */
interface BrowserHeaders {
  readonly host: HostParts
  readonly origin: string | undefined
  readonly fetchSite: string | undefined
}

export function originRefusal(headers: BrowserHeaders, isAllowedOrigin: (origin: string) => boolean): string | null {
  const { origin, fetchSite } = headers
  if (origin === undefined && fetchSite === undefined) return null
  if (origin !== undefined && isAllowedOrigin(origin)) return null
  if (fetchSite === 'cross-site') return 'requests from pages of another site are not allowed'
  if (origin === undefined || isOurs(origin, headers)) return null
  return 'this origin is not allowed; list it in the CORS origins to allow it'
}

const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: '80', https: '443' }

/**
 * The page comes from the very host and port that it asks; where a port is left out it is the default one of the page's
 * scheme. A proxy may have dropped the port from `Host`, so there it may be any, unless the browser itself says that the page
 * is another one.
 */
function isOurs(origin: string, { host, fetchSite = 'same-origin' }: BrowserHeaders): boolean {
  const [, scheme = '', rest = ''] = /^(https?):\/\/(.+)$/i.exec(origin) ?? []
  const sender = readHost(rest)
  if (sender === null || sender.name !== host.name) return false
  if (host.port === '' && fetchSite === 'same-origin') return true
  const defaultPort = DEFAULT_PORTS[scheme.toLowerCase()]
  return (sender.port || defaultPort) === (host.port || defaultPort)
}

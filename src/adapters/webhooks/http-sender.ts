/**
 * Messages as POST requests. Addresses of accounts are called through connections that lead to public addresses only; those of the
 * operator's own configuration may lie anywhere. Redirects are not followed: the owner of an endpoint that moves changes its address.
 */
import { isIP } from 'node:net'
import { ExchangeError } from '../../../lib/outbound/exchange.ts'
import { createGuardedConnector, unwrapBlocked } from '../../../lib/outbound/guarded-connector.ts'
import {
  BlockedAddressError,
  mustBeOpen,
  type Network,
  privateNetwork,
  toLiteral,
} from '../../../lib/outbound/network.ts'
import { type OutboundClient, openOutboundClient } from '../../../lib/outbound/outbound-client.ts'
import { signMessage } from '../../../lib/standard-webhooks.ts'
import type { SendAnswer, WebhookSender } from '../../domain/webhooks/sender.ts'
import type { AttemptOutcome } from '../../domain/webhooks/webhook.ts'
import { toMessageBody } from './message-body.ts'

interface HttpSenderOptions {
  /** What addresses of accounts may reach. */
  readonly network: Network
  readonly timeoutMs: number
  readonly version: string
}

interface HttpSender extends WebhookSender, AsyncDisposable {}

// Of the answer this much is kept for inspection, and little more is read.
const KEPT_CHARACTERS = 1024
const MAX_ANSWER_BYTES = 65_536
const CONNECTIONS_PER_HOST = 16
const GONE = 410

export function openHttpSender({ network, timeoutMs, version }: HttpSenderOptions): HttpSender {
  const open = (to: Network) =>
    openOutboundClient({ connectionsPerHost: CONNECTIONS_PER_HOST, connect: createGuardedConnector(to) })
  const clients = { guarded: open(withoutOracle(network)), trusted: open(privateNetwork) }
  return {
    async send({ message, endpoint, secrets, at, signal }) {
      const body = toMessageBody(message)
      const headers = {
        'content-type': 'application/json',
        'user-agent': `atelier/${version}`,
        ...signMessage(secrets, { id: message.id, at, body }),
      }
      const isTrusted = endpoint.kind === 'operator'
      const call = { url: endpoint.url, headers, body, timeoutMs, signal }
      return post(isTrusted ? clients.trusted : clients.guarded, isTrusted ? privateNetwork : network, call)
    },
    refusalOf: (url) => refusalOf(url, network),
    async [Symbol.asyncDispose]() {
      await Promise.all([clients.guarded[Symbol.asyncDispose](), clients.trusted[Symbol.asyncDispose]()])
    },
  }
}

interface PostCall {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

async function post(client: OutboundClient, network: Network, call: PostCall): Promise<SendAnswer> {
  const { headers, body, timeoutMs, signal } = call
  try {
    const url = new URL(call.url)
    mustBeOpen(url, network)
    const { origin, pathname, search } = url
    const request = { origin, path: `${pathname}${search}`, method: 'POST' as const, headers, body }
    const limits = { totalTimeMs: timeoutMs, maxBytes: MAX_ANSWER_BYTES, signal }
    const answer = await client.send(request, limits).catch(unwrapBlocked)
    const text = Buffer.isBuffer(answer.body) ? answer.body.toString('utf8') : ''
    return { outcome: outcomeOf(answer.status), status: answer.status, response: toKept(text) }
  } catch (error) {
    if (signal.aborted) throw error
    return toFailure(error)
  }
}

function outcomeOf(status: number): AttemptOutcome {
  if (status >= 200 && status < 300) return 'delivered'
  if (status === GONE) return 'gone'
  return status >= 300 && status < 400 ? 'redirected' : 'refused'
}

function toFailure(error: unknown): SendAnswer {
  if (error instanceof BlockedAddressError) return { outcome: 'blocked', status: null, response: error.message }
  if (!(error instanceof ExchangeError)) throw error
  const { fault, status, message } = error
  // The status is known; the rest of the answer is longer than what is read.
  if (fault === 'too_large' && status !== null) return { outcome: outcomeOf(status), status, response: toKept(message) }
  const outcome = fault === 'unreachable' || fault === 'timeout' ? fault : 'broken'
  return { outcome, status, response: message }
}

/** A database keeps no NUL. */
function toKept(text: string): string | null {
  const kept = text.replaceAll('\0', '').slice(0, KEPT_CHARACTERS).toWellFormed()
  return kept === '' ? null : kept
}

/**
 * A name that leads nowhere is answered like one that leads to private addresses alone: otherwise an account could find out which
 * names of the operator's own network exist.
 */
function withoutOracle(network: Network): Network {
  if (network.mayConnect === privateNetwork.mayConnect) return network
  return { ...network, resolve: (hostname) => network.resolve(hostname).catch(() => []) }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
const BLANKS = /[\u0000-\u0020\u007f]/

/** By the text alone. What a name leads to is looked at when a connection is made: it may change, and whoever asks must not learn it. */
function refusalOf(text: string, network: Network): string | null {
  const url = URL.parse(text)
  // A parser drops blanks and control characters; an address is called as it was given, or not at all.
  if (url === null || BLANKS.test(text)) return 'must be an address, such as https://example.com/hooks'
  try {
    mustBeOpen(url, network)
    const literal = toLiteral(url.hostname)
    if (isIP(literal) !== 0 && !network.mayConnect(literal))
      throw new BlockedAddressError(url.host, 'it is not a public address')
    return null
  } catch (error) {
    if (error instanceof BlockedAddressError) return `cannot be called: ${error.message}`
    throw error
  }
}

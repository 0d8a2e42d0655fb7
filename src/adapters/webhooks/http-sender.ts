/**
 * Messages as POST requests. Addresses of accounts are called through connections that lead to public addresses only; those of the
 * operator's own configuration may lie anywhere. Redirects are not followed: the owner of an endpoint that moves changes its address.
 */

import { isIP } from 'node:net'
import { ExchangeError, type OutboundClient, openOutboundClient } from '../../../lib/outbound/exchange.ts'
import {
  BlockedAddressError,
  createGuardedConnector,
  mustBeOpen,
  type Network,
  privateNetwork,
  toLiteral,
  unwrapBlocked,
} from '../../../lib/outbound/network.ts'
import { signMessage } from '../../../lib/standard-webhooks.ts'
import type { JobError } from '../../domain/jobs/job.ts'
import { toToldError } from '../../domain/jobs/outputs/hidden-runs.ts'
import { isOfOther } from '../../domain/jobs/submit/job-labels.ts'
import type { SendAnswer, WebhookSender } from '../../domain/webhooks/sender.ts'
import type { AttemptOutcome, Message, MessageType } from '../../domain/webhooks/webhook.ts'

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
    async send({ message, body: given, endpoint, secrets, at, signal }) {
      const body = given ?? toMessageBody(message)
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

type Facts = Readonly<Record<string, unknown>>
type ToData = (message: Message, facts: Facts) => object

/** What is sent, in the words of the wire: type, time and what was true then. The same message makes the same text in every try. */
function toMessageBody(message: Message): string {
  const facts = JSON.parse(message.facts) as Facts
  const data = DATA[message.type](message, facts)
  // Receivers of pool hooks know the fields at the top, where they stood before there were webhooks.
  const former = message.type.startsWith('pool.') ? facts : {}
  return JSON.stringify({ type: message.type, timestamp: message.at.toISOString(), data, ...former })
}

const MICROS_PER_USD = 1_000_000

function toTime(value: unknown): string | null {
  return typeof value === 'number' ? new Date(value).toISOString() : null
}

function toOutput(output: Facts): object {
  return { ...output, hash: `blake3:${String(output['hash'])}` }
}

const toJob: ToData = ({ subject }, facts) => ({
  job_id: subject,
  status: facts['status'],
  created_at: toTime(facts['created_at']),
  started_at: toTime(facts['started_at']),
  completed_at: toTime(facts['completed_at']),
  expires_at: toTime(facts['expires_at']),
  attempt: facts['attempt'],
  metadata: facts['metadata'],
  error: toError(facts['error'] as Facts | null, isOfOther((facts['metadata'] ?? {}) as Record<string, string>)),
  output_count: facts['output_count'],
  outputs: (facts['outputs'] as readonly Facts[]).map(toOutput),
  ...(facts['reused_from'] !== undefined && { reused_from: facts['reused_from'] }),
})

/** Without the traceback, which may be long: the job has it. */
function toError(error: Facts | null, isHidden: boolean): object | null {
  if (error === null) return null
  const {
    code,
    message,
    nodeId = null,
    classType = null,
  } = isHidden ? toToldError(error as unknown as JobError) : error
  return { code, message, node_id: nodeId, class_type: classType }
}

const CALL_STATUS: Readonly<Record<string, string>> = {
  canceled: 'canceled',
  interrupted: 'failed',
  unusable: 'failed',
}

const toCall: ToData = ({ subject }, facts) => {
  const refusal = facts['refusal'] as Facts | null
  const micros = facts['cost_micros']
  return {
    request_id: subject,
    model: facts['model'],
    status: CALL_STATUS[String(facts['state'])] ?? (refusal === null ? 'succeeded' : 'failed'),
    created_at: toTime(facts['created_at']),
    started_at: toTime(facts['started_at']),
    completed_at: toTime(facts['completed_at']),
    error: refusal === null ? null : { code: refusal['refusal'], message: refusal['message'] },
    content_type: facts['content_type'],
    size_bytes: facts['content_type'] === null ? null : facts['size_bytes'],
    cost_usd: typeof micros === 'number' ? micros / MICROS_PER_USD : null,
  }
}

const toCredits: ToData = (_message, facts) => ({
  balance_usd: Number(facts['balance_micros']) / MICROS_PER_USD,
  threshold_usd: Number(facts['mark_micros']) / MICROS_PER_USD,
})

/** Written by this service in the words of the wire already. */
const asItIs: ToData = (_message, facts) => facts

const DATA: Readonly<Record<MessageType, ToData>> = {
  'job.queued': toJob,
  'job.started': toJob,
  'job.succeeded': toJob,
  'job.failed': toJob,
  'job.canceled': toJob,
  'job.expired': toJob,
  'output.created': ({ subject }, facts) => ({ job_id: subject, output: toOutput(facts) }),
  'model_call.completed': toCall,
  'credits.low': toCredits,
  'budget.threshold': asItIs,
  'webhook.disabled': asItIs,
  'webhook.test': asItIs,
  'usage.events': asItIs,
  'pool.workers_wanted': asItIs,
  'pool.workers_idle': asItIs,
}

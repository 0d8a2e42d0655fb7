/**
 * Runs a model and answers on the raw response, for the path in front of the framework and for the framework's own route
 * alike. Nothing is written before the end is known; the connection is kept for as long as the call may take.
 */

import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import type { Log } from '../../../lib/log.ts'
import { type Caller, mustHaveScope } from '../../domain/accounts/caller.ts'
import type { BlobStore } from '../../domain/assets/blob-store.ts'
import type { Access, SpendOf } from '../../domain/models/access/model-access.ts'
import type { OpenedModel } from '../../domain/models/access/own-models.ts'
import { NO_WISH, type ProviderWish } from '../../domain/models/alternates/choose-providers.ts'
import type { RunAnswer, RunModel } from '../../domain/models/calls/run-call.ts'
import { isRecord, type JsonRecord, type Model } from '../../domain/models/catalog/model.ts'
import { RouterError, type ValidationFailure } from '../../domain/models/router-error.ts'
import { claimOf } from '../kit/bodies/body-memory.ts'
import { dropRestOf, keepOpenFor } from '../kit/bodies/gather-body.ts'
import { readBodyBytes } from '../kit/bodies/json-body.ts'
import { holdOpen, keepUntilAnswered, writeAnswer } from '../kit/connections/raw-connections.ts'
import { mustNameNoDeployment } from '../kit/guards/addresses.ts'
import type { Gate, ServiceAddress } from '../kit/guards/gate.ts'
import { fingerprintOf, mustBeResult, parseModelInput, readCallTag, readKey } from '../kit/model-calls.ts'
import { findRepeated, markRoute, pathOf, readQuery, requestIdOf } from '../kit/request.ts'
import type { AnswerError, HotRoute } from '../kit/surface.ts'
import { withSpend } from './router-errors.ts'
import {
  type CostHeaders,
  MODEL_ROUTE,
  MODELS_PATH,
  type ModelParams,
  RUN_RIGHT,
  type ServedHeaders,
  toSpendHeaders,
} from './router-operation.ts'

interface ServeRunDeps {
  readonly gate: Gate
  readonly access: Pick<Access, 'open' | 'choose'>
  readonly runModel: RunModel
  readonly spendOf: SpendOf
  readonly blobs: Pick<BlobStore, 'open'>
  readonly answerError: AnswerError
  readonly costHeaders: CostHeaders
  readonly servedHeaders: ServedHeaders
  readonly maxBodyBytes: number
  /** How long a connection may be silent while its call runs. */
  readonly holdMs: number
  readonly log: Log
}

interface RunCall extends ModelParams {
  readonly caller: Caller
  readonly address: ServiceAddress
}

/** Never rejects. */
export type ServeRun = (request: IncomingMessage, response: ServerResponse, call: RunCall) => Promise<void>

export function createServeRun(deps: ServeRunDeps): ServeRun {
  const { gate, access, runModel, answerError, log } = deps

  async function run(request: IncomingMessage, response: ServerResponse, call: RunCall): Promise<RunAnswer> {
    const { caller, address } = call
    mustHaveScope(caller, RUN_RIGHT)
    const found = await access.open(caller, call.provider, call.model)
    const opened = await openWithQuery(found, request.url, (wish) => access.choose(caller, found, wish))
    const key = readKey(request)
    const { body, input } = await readCallInput(request, deps.maxBodyBytes)
    holdOpen(response, deps.holdMs)
    return runModel({
      opened,
      accountId: caller.accountId,
      keyId: caller.keyId,
      tag: readCallTag(request.headers),
      requestId: requestIdOf(request),
      key,
      fingerprint: key === null ? '' : fingerprintOf(request, body),
      body,
      input,
      baseUrl: address.origin + address.mountPrefix,
      listener: { isConnected: () => isSurelyThere(request, response) },
      holdBody: () => claimOf(request).hold(),
    })
  }

  async function writeResult(response: ServerResponse, headers: string[], answer: RunAnswer): Promise<void> {
    const result = mustBeResult(answer)
    headers.push('Content-Type', result.contentType, 'Content-Length', String(result.sizeBytes))
    if (answer.isReplay) headers.push('Idempotent-Replayed', 'true')
    headers.push(...deps.costHeaders(result.costMicros), ...toSpendHeaders(answer.spend))
    headers.push(...deps.servedHeaders(result.served ?? null))
    if (result.body.kind === 'inline') {
      response.writeHead(200, headers)
      response.end(result.body.bytes)
      return
    }
    const content = await deps.blobs.open(result.body.hash)
    response.writeHead(200, headers)
    await pipeline(content, response)
  }

  return async function serveRun(request, response, call) {
    keepUntilAnswered(request.socket)
    const requestId = requestIdOf(request)
    const headers = gate.answerHeaders(request.headers.origin, requestId)
    try {
      const answer = await run(request, response, call)
      if (!isSurelyThere(request, response)) logDisconnect(log, requestId, call)
      if (!response.destroyed) await writeResult(response, headers, answer)
    } catch (error) {
      const told = await withSpend(error, call.caller.accountId, deps.spendOf).catch(() => error)
      if (response.destroyed || response.headersSent) {
        logDisconnect(log, requestId, call)
        response.destroy()
        return
      }
      keepOpenFor(request, response)
      writeAnswer(response, headers, answerError(told, requestId))
      dropRestOf(request)
    }
  }
}

/**
 * Whether the caller is surely there. One that ended its own side may be gone, or may wait for its answer: the answer is sent,
 * but the call counts as undelivered, so that a repeat with its key still collects it.
 */
function isSurelyThere(request: IncomingMessage, response: ServerResponse): boolean {
  return !response.destroyed && !request.socket.readableEnded
}

/** The call ran on and is recorded; only its answer could not be delivered. */
function logDisconnect(log: Log, requestId: string, { provider, model }: ModelParams): void {
  log.info(
    { requestId, model: `${provider}/${model}`, errorType: 'client_disconnected', status: 499 },
    'client disconnected',
  )
}

/**
 * Running a model, answered in front of the framework: it is the most frequent request, and a call that takes minutes would
 * hold the framework's objects as long. The same guards run; at the first irregularity before the body the request is left,
 * untouched, to the framework.
 */
export function createHotPath(gate: Gate, serveRun: ServeRun): HotRoute {
  const prefix = `${gate.mountPrefix}${MODELS_PATH}/`

  function identify(request: IncomingMessage): { readonly address: ServiceAddress; readonly caller: Caller } | null {
    try {
      const address = gate.admit(request)
      mustNameNoDeployment(address)
      const caller = gate.authenticate(request, 'api_key')
      return caller instanceof Promise ? null : { address, caller }
    } catch {
      return null // the framework's hooks run into the same refusal and answer it
    }
  }

  return {
    prefix,
    answer(request, response) {
      const { method, url = '' } = request
      if (method !== 'POST') return false
      const path = pathOf(url).slice(prefix.length)
      const slash = path.indexOf('/')
      // Two plain segments and nothing else; whatever is escaped goes the long way.
      if (slash === -1 || path.includes('/', slash + 1) || path.includes('%')) return false
      const known = identify(request)
      if (known === null) return false
      markRoute(request, gate.mountPrefix + MODEL_ROUTE)
      void serveRun(request, response, { ...known, provider: path.slice(0, slash), model: path.slice(slash + 1) })
      return true
    },
  }
}

/**
 * The body of a call: its bytes as they came, what they say, and what tells this request apart from another with the same
 * key. What is wrong with the JSON is returned, not thrown: a call is judged by other things first.
 */
interface CallInput {
  readonly body: Buffer
  readonly input: JsonRecord | RouterError
}

// 100 MiB over a slow line; a sender that drips is cut off all the same.
const BODY_MS = 600_000

export async function readCallInput(request: IncomingMessage, maxBytes: number): Promise<CallInput> {
  const body = await readBodyBytes(request, { maxBytes, deadlineMs: BODY_MS })
  return { body, input: await parseModelInput(request, body) }
}

// The query of a call. `model_provider` names who is to serve it, `strict_mode=true` says that the body is in that provider's own
// form, and only the exact `fallback_provider=false` keeps the call from a second provider. `reject_unknown_fields=true` refuses
// top-level fields that the schema does not declare. Other parameters are ignored.

const SWITCHES = ['strict_mode', 'reject_unknown_fields'] as const
const SINGLE: readonly string[] = ['model_provider', 'fallback_provider', ...SWITCHES]

/** The model as this query wants it. Throws malformed, unknown_model. */
export async function openWithQuery(
  found: OpenedModel,
  url: string | undefined,
  choose: (wish: ProviderWish) => Promise<OpenedModel>,
): Promise<OpenedModel> {
  if (url === undefined || !url.includes('?')) return found.model.isOwn === true ? found : choose(NO_WISH)
  const query = readPairs(url)
  for (const name of SWITCHES) mustBeSwitch(name, query.get(name))
  const opened = await choose({
    provider: query.get('model_provider') ?? null,
    isStrict: query.get('strict_mode') === 'true',
    mayFallBack: query.get('fallback_provider') !== 'false',
  })
  if (query.get('reject_unknown_fields') !== 'true') return opened
  const [first] = opened.serving?.candidates ?? []
  const known = declaredFields(first?.form === 'own_form' ? first.model : opened.model)
  if (known === null) return opened
  const { checkInput } = opened
  return { ...opened, checkInput: (input) => [...checkInput(input), ...unknownFields(input, known)] }
}

function readPairs(url: string): ReadonlyMap<string, string> {
  const pairs = readQuery(url)
  if (pairs === null) throw new RouterError('malformed', 'the query cannot be read')
  const repeated = findRepeated(pairs, SINGLE)
  if (repeated !== null) throw new RouterError('malformed', `${repeated} occurs twice in the query`)
  return new Map(pairs)
}

function mustBeSwitch(name: string, value: string | undefined): void {
  if (value === undefined || value === 'true' || value === 'false') return
  throw new RouterError('malformed', `${name} must be true or false`)
}

/** null: the model has no schema, or one that names no fields, and takes any object. */
function declaredFields({ input: { schema, modelField } }: Model): ReadonlySet<string> | null {
  const properties = schema?.['properties']
  if (!isRecord(properties)) return null
  return new Set([...Object.keys(properties), ...(modelField === null ? [] : [modelField])])
}

function unknownFields(input: Readonly<Record<string, unknown>>, known: ReadonlySet<string>): ValidationFailure[] {
  const unknown = Object.keys(input).filter((field) => !known.has(field))
  return unknown.map((field) => ({ loc: ['body', field], msg: 'the model knows no such field', type: 'value_error' }))
}

/**
 * Runs a model and answers on the raw response, for the path in front of the framework and for the framework's own route
 * alike. Nothing is written before the end is known; the connection is kept for as long as the call may take.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import type { Log } from '../../../lib/log.ts'
import { type Caller, mustHaveScope } from '../../domain/accounts/caller.ts'
import type { BlobStore } from '../../domain/assets/blob-store.ts'
import type { SpendOf } from '../../domain/models/access/committed-spend.ts'
import type { Access } from '../../domain/models/access/model-access.ts'
import type { RunAnswer, RunModel } from '../../domain/models/calls/run-call.ts'
import { claimOf } from '../kit/bodies/body-memory.ts'
import { dropRestOf, keepOpenFor } from '../kit/bodies/unread-body.ts'
import { keepUntilAnswered } from '../kit/connections/half-closed.ts'
import { holdOpen } from '../kit/connections/hold-open.ts'
import { writeAnswer } from '../kit/connections/raw-answer.ts'
import type { Gate, ServiceAddress } from '../kit/guards/gate.ts'
import { mustBeResult } from '../kit/model-calls.ts'
import { requestIdOf } from '../kit/request-identity.ts'
import type { AnswerError } from '../kit/surface.ts'
import { fingerprintOf, readCallInput, readKey } from './requests/call-input.ts'
import { openWithQuery } from './requests/run-query.ts'
import { withSpend } from './router-errors.ts'
import { type CostHeaders, toSpendHeaders } from './router-headers.ts'
import { type ModelParams, RUN_RIGHT } from './router-operation.ts'

interface ServeRunDeps {
  readonly gate: Gate
  readonly access: Pick<Access, 'open'>
  readonly runModel: RunModel
  readonly spendOf: SpendOf
  readonly blobs: Pick<BlobStore, 'open'>
  readonly answerError: AnswerError
  readonly costHeaders: CostHeaders
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
    const opened = openWithQuery(await access.open(caller, call.provider, call.model), request.url)
    const key = readKey(request)
    const { body, input } = await readCallInput(request, deps.maxBodyBytes)
    holdOpen(response, deps.holdMs)
    return runModel({
      opened,
      accountId: caller.accountId,
      keyId: caller.keyId,
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

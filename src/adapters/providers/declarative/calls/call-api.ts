/** One request to the provider for a step of a call, with its bounds; observer and circuit breaker are told of the result. */
import type { IncomingHttpHeaders } from 'node:http'
import { ExchangeError } from '../../../../../lib/outbound/exchange.ts'
import { MAX_TIMER_MS } from '../../../../../lib/waiting/sleep.ts'
import type { Model } from '../../../../domain/models/catalog/model.ts'
import type { ApiRequest } from '../../outbound/api-client.ts'
import { type ReadAnswer, readAnswer } from '../answer/read-answer.ts'
import type { DeclarativeDeps, ExchangeKind, ProviderContext } from '../provider-context.ts'

// Ten pictures in base64 are tens of megabytes; a video inline may be more.
const DOCUMENT_MAX_BYTES = 256 * 1024 * 1024
const STREAM_MAX_BYTES = 2 * 1024 * 1024 * 1024
const POLL_HEAD_MS = 120_000
const DOCUMENT_BODY_MS = 120_000
const STREAM_BODY_MS = 600_000

interface CallApiOptions {
  readonly model: Pick<Model, 'id'>
  readonly kind: ExchangeKind
  readonly signal: AbortSignal
  readonly deadline: Date
  readonly maxBytes: number | null
  /** A good answer that is no JSON is handed on as it comes. */
  readonly isBytes: boolean
}

type CallApi = (request: Omit<ApiRequest, 'keyHeaders'>, key: string, options: CallApiOptions) => Promise<ReadAnswer>

export function createCallApi(
  { rules, client, breaker, authHeaders }: ProviderContext,
  deps: DeclarativeDeps,
): CallApi {
  return async function callApi(request, key, { model, kind, signal, deadline, maxBytes, isBytes }) {
    const startedMs = performance.now()
    const leftMs = Math.max(1, deadline.getTime() - deps.clock.now().getTime())
    const tell = (status: number | null) =>
      deps.observe({
        provider: rules.provider,
        model: model.id,
        kind,
        status,
        milliseconds: performance.now() - startedMs,
      })
    try {
      const headers = {
        accept: 'application/json',
        'accept-encoding': 'identity',
        ...rules.headers,
        ...request.headers,
      }
      const answer = await client.call(
        { ...request, headers, keyHeaders: authHeaders(key) },
        {
          signal,
          // An answer that comes after the caller's deadline is still paid for; the signal says when it is no longer wanted.
          headTimeMs: kind === 'submit' ? MAX_TIMER_MS : Math.min(leftMs, POLL_HEAD_MS),
          bodyTimeMs: isBytes ? STREAM_BODY_MS : DOCUMENT_BODY_MS,
          maxBytes: maxBytes ?? (isBytes ? STREAM_MAX_BYTES : DOCUMENT_MAX_BYTES),
          mayStream: isBytes ? isMediaAnswer : undefined,
        },
      )
      tell(answer.status)
      if (answer.status >= 500) breaker.failed()
      else breaker.succeeded()
      return readAnswer(answer)
    } catch (error) {
      tell(error instanceof ExchangeError ? error.status : null)
      if (error instanceof ExchangeError && error.fault !== 'aborted') breaker.failed()
      throw error
    }
  }
}

function isMediaAnswer(status: number, headers: IncomingHttpHeaders): boolean {
  return (
    status >= 200 && status < 300 && !/^(application\/([a-z.-]+\+)?json|text\/)/i.test(headers['content-type'] ?? '')
  )
}

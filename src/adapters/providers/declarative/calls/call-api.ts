/** One request to the provider for a step of a call, with its bounds; the observer is told of the result. */
import type { IncomingHttpHeaders } from 'node:http'
import { ExchangeError } from '../../../../../lib/outbound/exchange.ts'
import { createBackoff, MAX_TIMER_MS } from '../../../../../lib/waiting/sleep.ts'
import type { Sending } from '../../../../domain/models/calls/live-calls.ts'
import { findValue, isRecord, type Json, type Model } from '../../../../domain/models/catalog/model.ts'
import type { ProviderCall, SubmitOutcome } from '../../../../domain/models/provider.ts'
import { type ReadAnswer, readAnswer } from '../answer/read-answer.ts'
import type { ApiRequest, DeclarativeDeps, ExchangeKind, ProviderContext } from '../provider-context.ts'
import { toValues } from '../request/build-request.ts'
import {
  type CompiledFetch,
  type CompiledModel,
  type CompiledOperation,
  type CompiledTask,
  type TaskState,
  toWord,
} from '../rules/compile-model.ts'
import { type Answer, type Classify, isEmpty, type Judgement, type TemplateValues } from '../rules/rule-types.ts'

// Ten pictures in base64 are tens of megabytes; a video inline may be more.
const DOCUMENT_MAX_BYTES = 256 * 1024 * 1024
const STREAM_MAX_BYTES = 2 * 1024 * 1024 * 1024
const POLL_HEAD_MS = 120_000
const DOCUMENT_BODY_MS = 120_000
const STREAM_BODY_MS = 600_000
const EVENTS_BODY_MS = 3_600_000
const EVENTS_MAX_BYTES = 128 * 1024 * 1024
// Models that think before they write send something in the meantime.
const EVENT_SILENCE_MS = 300_000

interface CallApiOptions {
  readonly model: Pick<Model, 'id'>
  readonly kind: ExchangeKind
  readonly signal: AbortSignal
  readonly deadline: Date
  readonly maxBytes: number | null
  /** A good answer of this kind is handed on as it comes; left out: it is collected. */
  readonly streams?: keyof typeof STREAM_LIMITS
}

type CallApi = (request: Omit<ApiRequest, 'keyHeaders'>, key: string, options: CallApiOptions) => Promise<ReadAnswer>

export function createCallApi({ rules, client, authHeaders }: ProviderContext, deps: DeclarativeDeps): CallApi {
  return async function callApi(request, key, { model, kind, signal, deadline, maxBytes, streams = 'none' }) {
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
          ...STREAM_LIMITS[streams],
          ...(maxBytes !== null && { maxBytes }),
        },
      )
      tell(answer.status)
      return readAnswer(answer)
    } catch (error) {
      tell(error instanceof ExchangeError ? error.status : null)
      throw error
    }
  }
}

const STREAM_LIMITS = {
  none: { bodyTimeMs: DOCUMENT_BODY_MS, maxBytes: DOCUMENT_MAX_BYTES },
  bytes: { bodyTimeMs: STREAM_BODY_MS, maxBytes: STREAM_MAX_BYTES, mayStream: isMediaAnswer },
  events: {
    bodyTimeMs: EVENTS_BODY_MS,
    silentBodyMs: EVENT_SILENCE_MS,
    maxBytes: EVENTS_MAX_BYTES,
    mayStream: isEvents,
  },
} as const

function isEvents(status: number, headers: IncomingHttpHeaders): boolean {
  return status >= 200 && status < 300 && /^text\/event-stream\b/i.test(headers['content-type'] ?? '')
}

function isMediaAnswer(status: number, headers: IncomingHttpHeaders): boolean {
  return (
    status >= 200 && status < 300 && !/^(application\/([a-z.-]+\+)?json|text\/)/i.test(headers['content-type'] ?? '')
  )
}

const MAX_CONNECT_TRIES = 3
const MAX_WAITS = 16
const FIRST_PAUSE_MS = 500
const MAX_PAUSE_MS = 30_000
// Of all pauses together that the provider did not ask for.
const UNASKED_MS = 30_000

type PatienceDeps = Pick<DeclarativeDeps, 'clock' | 'random' | 'sleep'>

interface PatienceOptions {
  readonly signal: AbortSignal
  readonly deadline: Date
  /** What an answer means; null: it is a success. Asked once for each: an answer may be tens of megabytes. */
  readonly judge: (answer: ReadAnswer) => Judgement | null
  /** Told before every try, and after one that certainly left nothing at the provider. */
  readonly sending?: Sending
  /** Nothing is sent again: another provider is asked instead. */
  readonly isImpatient?: boolean
}

interface JudgedAnswer {
  readonly answer: ReadAnswer
  readonly judgement: Judgement | null
}

/**
 * Sends a submit, and sends it again only where certainly nothing was accepted: the connection was refused, or the provider
 * answered "later". Both are repeated only until the deadline, and a "later" without a time only for half a minute: a caller waits,
 * and credit is held for it. Whatever else fails after the first byte was sent is not repeated.
 */
export async function sendPatiently(
  send: () => Promise<ReadAnswer>,
  { signal, deadline, judge, sending, isImpatient = false }: PatienceOptions,
  { clock, random, sleep }: PatienceDeps,
): Promise<JudgedAnswer> {
  const backoff = createBackoff({ firstMs: FIRST_PAUSE_MS, maxMs: MAX_PAUSE_MS, random })
  const pauseFor = async (ms: number): Promise<boolean> => {
    if (isImpatient || clock.now().getTime() + ms >= deadline.getTime()) return false
    await sleep(ms, signal)
    return !signal.aborted
  }
  let refusals = 0
  let waits = 0
  let unaskedMs = UNASKED_MS
  for (;;) {
    await sending?.begins()
    try {
      const answer = await send()
      const judgement = judge(answer)
      const isBusy = judgement?.meaning === 'wait'
      if (isBusy) await sending?.leftNothing()
      if (!isBusy || ++waits >= MAX_WAITS) return { answer, judgement }
      const askedMs = readRetryAfterMs(answer.headers['retry-after'], clock.now().getTime())
      const pauseMs = askedMs === null ? Math.min(backoff.nextMs(), unaskedMs) : Math.max(askedMs, backoff.nextMs())
      if (askedMs === null) unaskedMs -= pauseMs
      if (pauseMs <= 0 || !(await pauseFor(pauseMs))) return { answer, judgement }
    } catch (error) {
      const isUnsent = error instanceof ExchangeError && !error.wasSent
      if (isUnsent) await sending?.leftNothing()
      const mayRepeat = isUnsent && error.fault === 'unreachable'
      if (!mayRepeat || ++refusals >= MAX_CONNECT_TRIES || !(await pauseFor(backoff.nextMs()))) throw error
    }
  }
}

/** The longest wait that a provider can ask for. */
const RETRY_AFTER_MAX_MS = 150_000

/** How long a provider asks us to wait: seconds or a date (RFC 9110, 10.2.3). null: it does not say, or nothing usable. */
export function readRetryAfterMs(header: string | string[] | undefined, nowMs: number): number | null {
  const text = (Array.isArray(header) ? header[0] : header)?.trim()
  if (text === undefined || text === '') return null
  // Some runtimes read a date into nearly every text; the real ones begin with the name of a day.
  const dateMs = /^[A-Za-z]/.test(text) ? Date.parse(text) : Number.NaN
  const ms = /^\d+(\.\d+)?$/.test(text) ? Number(text) * 1000 : dateMs - nowMs
  if (Number.isNaN(ms)) return null
  return Math.min(Math.max(0, ms), RETRY_AFTER_MAX_MS)
}

// A task at the provider: what we keep of it, how it is asked for, what its state means, and how it is found again.

/** What is stored of a task: enough to poll it from another process. */
export interface TaskHandle {
  readonly operation: string
  readonly id: string
  readonly kept: Readonly<Record<string, string>>
}

/** null when the answer names no task. */
export function readHandle(answer: Answer, operation: string, task: CompiledTask): TaskHandle | null {
  const id = findValue(answer.document, task.id)
  if (isEmpty(id) || (typeof id !== 'string' && typeof id !== 'number')) return null
  return { operation, id: String(id), kept: readTexts(answer.document, task.keep) }
}

export function readTexts(document: unknown, paths: CompiledTask['keep']): Record<string, string> {
  const found = paths.map(([name, path]) => [name, findValue(document, path)] as const)
  return Object.fromEntries(found.filter(([, value]) => !isEmpty(value)).map(([name, value]) => [name, String(value)]))
}

export function isTaskHandle(handle: Json): boolean {
  return (
    isRecord(handle) &&
    typeof handle['operation'] === 'string' &&
    typeof handle['id'] === 'string' &&
    isRecord(handle['kept'])
  )
}

/** null: still running. A state that the rules do not name counts as running. */
export function readState(answer: Answer, task: CompiledTask): TaskState | null {
  for (const path of task.states) {
    const value = path === 'http_status' ? answer.status : findValue(answer.document, path)
    if (!isEmpty(value)) return task.meanings.get(toWord(value)) ?? null
  }
  return null
}

export interface FetchTarget {
  readonly method: CompiledFetch['method']
  readonly target: string
  readonly body: Buffer | null
}

export function toFetchTarget(fetch: CompiledFetch, values: TemplateValues): FetchTarget {
  const url = fetch.urlFrom === null ? undefined : values[fetch.urlFrom]
  const target = url ?? fetch.path?.(values)
  if (target === undefined) throw new Error('the rules give no address to ask')
  return {
    method: fetch.method,
    target,
    body: fetch.body === null ? null : Buffer.from(JSON.stringify(fetch.body(values))),
  }
}

interface FindStep {
  readonly call: ProviderCall
  readonly operation: CompiledOperation
  readonly classify: Classify
  readonly settings: Readonly<Record<string, string>>
  readonly ask: (asked: FetchTarget) => Promise<ReadAnswer>
}

/** Whether every task of this input could be found again. */
export function isFindable({ operations }: CompiledModel, input: Readonly<Record<string, unknown>>): boolean {
  return operations.every(({ task }) => {
    const field = task?.rules.find?.field
    return field !== undefined && (input[field] === undefined || input[field] === null)
  })
}

/**
 * Looks for the task of a submit whose answer was lost, by the reference that went along with it. Only a reference of our own
 * is ever looked for: a caller could choose one that names somebody else's task. null: the provider knows of no such task, so
 * none was made.
 */
export async function findTask({ call, operation, classify, settings, ask }: FindStep): Promise<SubmitOutcome | null> {
  const { task } = operation
  if (task === null || task.find === null) return null
  const answer = await ask(toFetchTarget(task.find, toValues(call, settings)))
  if (isUnknown(answer, classify)) return null
  const handle = answer.status < 300 ? readHandle(answer, operation.rules.name, task) : null
  // It may have finished long ago, so it is polled at once.
  if (handle !== null) return { outcome: 'accepted', handle: { ...handle }, pollAfterMs: 0 }
  const message = 'the provider cannot be asked now whether it has this call; the same Idempotency-Key asks again'
  const about = { message, upstreamStatus: answer.status, generation: 'possible' as const }
  return { outcome: 'refused', refusal: { reason: 'failed', ...about } }
}

function isUnknown(answer: Answer, classify: Classify): boolean {
  return answer.status === 404 || classify(answer, answer.status < 300 ? 'ok' : 'error') === 'invalid'
}

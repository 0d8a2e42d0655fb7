/** Asks once for the state of a task. A failed question says nothing about the task: only an answer of the provider ends it. */
import {
  isJsonObject,
  type JsonValue,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../../../lib/json/lossless-json.ts'
import { ExchangeError } from '../../../../../lib/outbound/exchange.ts'
import { BlockedAddressError } from '../../../../../lib/outbound/network.ts'
import type { Json } from '../../../../domain/models/catalog/model.ts'
import type {
  PollOutcome,
  Provider,
  ProviderOptions,
  ProviderReply,
  ProviderTask,
} from '../../../../domain/models/provider.ts'
import { hasOutput, hideKey, type ReadAnswer, refusalCost, toRefusal, toResult } from '../answer/read-answer.ts'
import { chooseKey, type DeclarativeDeps, type ExchangeKind, type ProviderContext } from '../provider-context.ts'
import { toValues } from '../request/build-request.ts'
import type { CompiledFetch, CompiledModel, CompiledTask } from '../rules/compile-model.ts'
import { compileTemplate, encodeForPath, type Meaning, type TemplateValues } from '../rules/rule-types.ts'
import {
  createCallApi,
  isTaskHandle,
  readRetryAfterMs,
  readState,
  readTexts,
  type TaskHandle,
  toFetchTarget,
} from './call-api.ts'

interface Step {
  readonly subject: ProviderTask
  readonly options: ProviderOptions
  readonly key: string
  readonly model: CompiledModel
  readonly task: CompiledTask
  readonly values: TemplateValues
}

// Meanings of an answer that leave the task running: the provider has trouble, or our account has.
const PASSING: readonly Meaning[] = ['transient', 'account', 'wait']

export function createPoll(
  context: ProviderContext,
  deps: DeclarativeDeps,
): Required<Pick<Provider, 'poll' | 'cancel'>> {
  const fetchOne = createFetchOne(context, deps)
  const askOnce = createAskOnce(context, deps, fetchOne)

  async function prepare(subject: ProviderTask, options: ProviderOptions): Promise<Step | null> {
    const access = await chooseKey(deps, subject)
    const model = context.modelOf(subject.model)
    if (access === null || !isTaskHandle(subject.handle)) return null
    const handle = subject.handle as unknown as TaskHandle
    const operation = model.operations.find(({ rules }) => rules.name === handle.operation)
    if (operation === undefined || operation.task === null) return null
    const values = {
      ...toValues({ model: subject.model, input: {}, submitKey: '' }, context.settings),
      ...handle.kept,
      id: handle.id,
    }
    return { subject, options, key: access.key, model, task: operation.task, values }
  }

  return {
    async poll(subject, options) {
      const step = await prepare(subject, options)
      if (step === null) return lostTask()
      const outcome = await askOnce(step).catch((error) => toPollOutcome(error, step.task))
      if (outcome.outcome === 'finished' || outcome.outcome === 'refused')
        context.taskSlots.release(toTaskName(subject.handle))
      return outcome
    },
    async cancel(subject, options) {
      const step = await prepare(subject, options)
      if (step === null || step.task.cancel === null) return
      await fetchOne(step, step.task.cancel, 'cancel').catch((error) => {
        deps.log.warn({ provider: context.rules.provider, reason: String(error) }, 'a task could not be canceled')
      })
      context.taskSlots.release(toTaskName(subject.handle))
    },
  }
}

/** One poll of a task, and what its answer means. */
function createAskOnce(
  context: ProviderContext,
  { clock }: DeclarativeDeps,
  fetchOne: ReturnType<typeof createFetchOne>,
) {
  function refuse(step: Step, answer: ReadAnswer, meaning: Meaning): PollOutcome {
    const { messages, validationList } = context
    const costMicros = refusalCost(step.subject.model, answer.document, step.model)
    const source = { answer, messages, validationList, secret: step.key, costMicros, generation: 'ended' as const }
    return { outcome: 'refused', refusal: toRefusal(meaning, source) }
  }

  /** An answer with an HTTP error. The document of a failed task is judged in `askOnce`. */
  function judgeError(step: Step, answer: ReadAnswer): PollOutcome {
    const pollAfterMs = step.task.rules.interval_ms
    const meaning = step.model.classify(answer, 'error')
    if (answer.status === 429 || meaning === 'wait') {
      const askedMs = readRetryAfterMs(answer.headers['retry-after'], clock.now().getTime())
      return { outcome: 'pending', pollAfterMs: Math.max(askedMs ?? 0, pollAfterMs) }
    }
    const isOver = meaning !== null && !PASSING.includes(meaning)
    if (isOver) return refuse(step, answer, meaning)
    return { outcome: 'unreachable', message: `the provider answered ${answer.status} to a poll`, pollAfterMs }
  }

  async function fetchResult(step: Step, polled: ReadAnswer): Promise<ReadAnswer> {
    const { result } = step.task
    if (result === null) return polled
    const values = { ...step.values, ...readTexts(polled.document, result.take) }
    const answer = await fetchOne({ ...step, values }, result, 'result')
    if (result.mergeAs === null || answer.status >= 300 || !answer.isJson) return answer
    return mergeInto(polled, answer, result.mergeAs)
  }

  async function finish(step: Step, polled: ReadAnswer): Promise<PollOutcome> {
    const answer = await fetchResult(step, polled)
    if (answer.status >= 300) return judgeError(step, answer)
    const isThere = hasOutput(answer.document, step.model)
    const meaning = step.model.classify(answer, 'ok', isThere)
    if (meaning !== null) return refuse(step, answer, meaning)
    if (isThere) return { outcome: 'finished', result: toResult(answer, step.model, step.values) }
    return refuse(step, { ...answer, document: { message: 'it finished without any output' } }, 'failed')
  }

  async function askOnce(step: Step): Promise<PollOutcome> {
    const pollAfterMs = step.task.rules.interval_ms
    const answer = await fetchOne(step, step.task.poll, 'poll')
    if (answer.status >= 300) return judgeError(step, answer)
    if (!answer.isJson) return { outcome: 'unreachable', message: 'the poll was answered with no JSON', pollAfterMs }
    const state = readState(answer, step.task)
    const isThere = hasOutput(answer.document, step.model)
    if (state === 'success' || (step.task.rules.done_by_output && isThere)) return finish(step, answer)
    if (state === 'policy') return refuse(step, answer, 'policy')
    if (state === 'timeout') return refuse(step, answer, step.model.classify(answer, 'failed') ?? 'timeout')
    if (state === 'failed') return refuse(step, answer, step.model.classify(answer, 'failed') ?? 'failed')
    const meaning = step.model.classify(answer, 'ok', isThere)
    if (meaning !== null && !PASSING.includes(meaning)) return refuse(step, answer, meaning)
    return { outcome: 'pending', pollAfterMs }
  }

  return askOnce
}

function createFetchOne(context: ProviderContext, deps: DeclarativeDeps) {
  const callApi = createCallApi(context, deps)

  function fetchOne(step: Step, fetch: CompiledFetch, kind: ExchangeKind): Promise<ReadAnswer> {
    const { subject, options, model } = step
    const { method, target, body } = toFetchTarget(fetch, step.values)
    const headers: Record<string, string> = body === null ? {} : { 'content-type': 'application/json' }
    const maxBytes = model.rules.max_answer_bytes ?? null
    const about = { ...options, model: subject.model, kind, maxBytes }
    return callApi({ method, target, headers, body }, step.key, about)
  }

  return fetchOne
}

function toTaskName(handle: Json): string {
  return JSON.stringify(handle)
}

/** The key is no longer configured, or the model's rules no longer have the operation. */
function lostTask(): PollOutcome {
  return {
    outcome: 'unreachable',
    message: 'the task cannot be asked for with the present settings',
    pollAfterMs: 10_000,
  }
}

function toPollOutcome(error: unknown, { rules }: CompiledTask): PollOutcome {
  if (error instanceof BlockedAddressError) {
    const about = { message: error.message, upstreamStatus: null, generation: 'possible' as const }
    return { outcome: 'refused', refusal: { reason: 'failed', ...about } }
  }
  if (!(error instanceof ExchangeError)) throw error
  return { outcome: 'unreachable', message: error.message, pollAfterMs: rules.interval_ms }
}

/** The document of the poll with that of the result inside it. Every digit is kept. */
function mergeInto(polled: ReadAnswer, { document, bytes }: ReadAnswer, name: string): ReadAnswer {
  const whole = parseLosslessJson(polled.bytes.toString('utf8'))
  const inner = parseLosslessJson(bytes.toString('utf8')) as JsonValue
  const innerValue = isJsonObject(inner) && Object.hasOwn(inner, name) ? inner[name] : inner
  const merged = isJsonObject(whole) ? { ...whole, [name]: innerValue } : whole
  const text = stringifyLosslessJson(merged)
  return { ...polled, document: document === null ? polled.document : JSON.parse(text), bytes: Buffer.from(text) }
}

const ACCOUNT_TROUBLE: ReadonlySet<number> = new Set([401, 402, 403])

/**
 * Passes a question of a caller on: the state of a task, a file that it made. The path is the rules'; what the caller says fills
 * single values in it, encoded. What comes back is the provider's own answer without our key in it; words about our account are
 * for the operator alone.
 */
export function createAsk(context: ProviderContext, deps: DeclarativeDeps): Required<Provider>['ask'] {
  const callApi = createCallApi(context, deps)
  const { provider } = context.rules
  const settings = Object.entries(context.settings).map(([name, value]) => [`setting.${name}`, value] as const)
  return async function ask({ model, method, path, values, body, ...whose }, { signal, deadline }) {
    const access = await chooseKey(deps, whose)
    if (access === null) return null
    const target = compileTemplate(path, encodeForPath)({ ...values, ...Object.fromEntries(settings) })
    const headers: Record<string, string> = body === null ? {} : { 'content-type': 'application/json' }
    const { operations, rules } = context.modelOf(model)
    const maxBytes = rules.max_answer_bytes ?? null
    const about = { model, kind: 'poll', maxBytes, streams: 'bytes', signal, deadline } as const
    try {
      const answer = await callApi({ method, target, headers: { accept: '*/*', ...headers }, body }, access.key, about)
      const contentType = answer.headers['content-type'] ?? 'application/octet-stream'
      if (ACCOUNT_TROUBLE.has(answer.status)) {
        if (!access.isOwn) deps.log.error({ provider, status: answer.status }, 'the provider refuses our account')
        return null
      }
      const isOver = operations.some(({ task }) => task !== null && readState(answer, task) !== null)
      const content = answer.stream ?? withoutKey(answer.bytes, access.key)
      return { status: answer.status, contentType, body: content, isOver }
    } catch (error) {
      if (error instanceof ExchangeError) return null
      throw error
    }
  }
}

function withoutKey(bytes: Buffer, key: string): ProviderReply['body'] {
  return bytes.includes(key) ? Buffer.from(hideKey(bytes.toString(), key)) : bytes
}

/**
 * A provider made of rules. It owns what all its calls share (connections, slots) and puts the steps in
 * order. The first of them is below, the others are under `calls`.
 */

import { finished, type Readable } from 'node:stream'
import { ExchangeError } from '../../../../lib/outbound/exchange.ts'
import { createSemaphore } from '../../../../lib/waiting/semaphore.ts'
import { type ToldTask, toTaskName } from '../../../domain/models/calls/told-task.ts'
import { type Model, readJsonPath } from '../../../domain/models/catalog/model.ts'
import type {
  Provider,
  ProviderCall,
  ProviderResult,
  SubmitOptions,
  SubmitOutcome,
} from '../../../domain/models/provider.ts'
import {
  generationAfter,
  hasOutput,
  hideKey,
  peekStream,
  type ReadAnswer,
  refusalCost,
  tellAnswer,
  toKeyRefusal,
  toRefusal,
  toResult,
  unavailable,
} from './answer/read-answer.ts'
import { createEventReading } from './answer/read-events.ts'
import {
  createCallApi,
  type FetchTarget,
  findTask,
  isFindable,
  readHandle,
  sendPatiently,
  type TaskHandle,
} from './calls/call-api.ts'
import { createOwnKeys } from './calls/own-keys.ts'
import { createAsk, createPoll } from './calls/poll-task.ts'
import {
  chooseKey,
  compileAuth,
  createTaskSlots,
  type DeclarativeDeps,
  openApiClient,
  type ProviderContext,
  type ProviderKey,
  type ProviderSettings,
} from './provider-context.ts'
import { buildRequest, chooseOperation, FieldRefusal } from './request/build-request.ts'
import { type CompiledModel, type CompiledOperation, compileModel } from './rules/compile-model.ts'
import { type Judgement, meaningOfStatus, type ProviderRules } from './rules/rule-types.ts'
import { checkModelRules } from './rules/rules-schema.ts'

export interface DeclarativeProvider extends Provider, AsyncDisposable {
  readonly health: () => { readonly taken: number; readonly waiting: number }
}

export function openDeclarativeProvider(
  rules: ProviderRules,
  settings: ProviderSettings,
  deps: DeclarativeDeps,
): DeclarativeProvider {
  const concurrency = settings.concurrency ?? rules.concurrency
  const { fetch, tracer } = deps
  const client = openApiClient({
    baseUrl: settings.baseUrl ?? rules.base_url,
    apiHosts: rules.api_hosts,
    concurrency,
    fetch,
    ...(tracer !== undefined && { traces: { tracer, provider: rules.provider } }),
  })
  const compiled = new WeakMap<Model, CompiledModel>()
  const slots = createSemaphore(concurrency)
  const taskSlots = createTaskSlots()
  const context: ProviderContext = {
    rules,
    client,
    slots,
    concurrency,
    taskSlots,
    authHeaders: compileAuth(rules.auth, deps.clock),
    settings: { ...rules.settings, ...settings.values },
    messages: rules.messages.map(readJsonPath),
    validationList: rules.validation_list === undefined ? null : readJsonPath(rules.validation_list),
    modelOf(model) {
      let found = compiled.get(model)
      if (found === undefined) {
        found = compileModel(model, rules)
        compiled.set(model, found)
      }
      return found
    },
  }
  const { poll, cancel } = createPoll(context, deps)
  return {
    name: rules.provider,
    access(accountId) {
      const key = deps.keyFor(accountId)
      if (key === null) return 'none'
      return key.isOwn ? 'own_key' : 'service_key'
    },
    ownKeys: createOwnKeys(context, deps),
    checkModel: (model) => checkModelRules(model, rules),
    deduplicates(model, input) {
      const compiledModel = context.modelOf(model)
      return compiledModel.rules.deduplicates === true || (input !== null && isFindable(compiledModel, input))
    },
    announcesSends: true,
    isPausedAfterFailures: true,
    submit: createSubmit(context, deps),
    poll,
    cancel,
    ask: createAsk(context, deps),
    health: () => ({ taken: slots.taken, waiting: slots.waiting }),
    async [Symbol.asyncDispose]() {
      taskSlots.clear()
      await client[Symbol.asyncDispose]()
    },
  }
}

// The first step of a call: take a slot at the provider, send the request, and find out what its answer means.

// Kept in the record of the call. Answers to submits are short, but for texts that are there at once.
const TOLD_MAX_LENGTH = 262_144

// Slots are held for seconds; what another process gives back is seen this soon.
const ASK_AGAIN_MS = 250

interface Step {
  readonly call: ProviderCall
  readonly options: SubmitOptions
  readonly access: ProviderKey
  readonly model: CompiledModel
  readonly operation: CompiledOperation
}

function createSubmit(context: ProviderContext, deps: DeclarativeDeps): Provider['submit'] {
  const { rules, taskSlots } = context
  const takeSlot = createTakeSlot(context, deps)
  const send = createSend(context, deps)

  return async function submit(call, options) {
    const access = await chooseKey(deps, call)
    if (access === null) return refused(call.isOwnKey === true ? keyIsGone(rules.provider) : noKey(rules.provider))
    const model = context.modelOf(call.model)
    const operation = chooseOperation(model, call.input, context.settings)
    if (operation === undefined) return refused(noOperation())
    const release = await takeSlot({ options, access })
    if (release === null) return refused(unavailable(`${rules.provider} had no free slot in time`, null))
    let outcome: SubmitOutcome | null = null
    try {
      outcome = await send({ call, options, access, model, operation }).catch(toOutcome)
      return outcome
    } finally {
      if (outcome?.outcome === 'accepted') {
        taskSlots.hold(JSON.stringify(outcome.handle), release, options.deadline.getTime() - deps.clock.now().getTime())
      } else if (outcome?.outcome === 'finished' && outcome.result.events !== undefined) {
        onEnd(outcome.result.body as Readable, release)
      } else release()
    }
  }
}

function createSend(context: ProviderContext, deps: DeclarativeDeps) {
  const callApi = createCallApi(context, deps)

  function refuse(step: Step, answer: ReadAnswer, { meaning, isStated }: Judgement): SubmitOutcome {
    const isDirect = step.operation.rules.returns !== 'task'
    // A refusal inside a success: a submit that was not taken leaves nothing, if the provider says so in words that the rules know; a
    // direct answer was the generation. An answer that nobody understands says nothing.
    const inside = isDirect && meaning !== 'wait' ? 'ended' : isStated ? 'none' : 'possible'
    const outside = meaning === 'not_accepted' ? 'none' : generationAfter(answer.status, isDirect)
    const generation = answer.status >= 300 ? outside : inside
    if (meaning === 'account' && !step.access.isOwn) {
      deps.log.error({ provider: context.rules.provider, status: answer.status }, 'the provider refuses our account')
    }
    const costMicros = refusalCost(step.call.model, answer.document, step.model)
    const { messages, validationList } = context
    const source = { answer, generation, messages, validationList, secret: step.access.key, costMicros }
    if (meaning === 'account' && step.access.isOwn) return refused(toKeyRefusal(context.rules.provider, source))
    return refused(toRefusal(meaning, source))
  }

  async function finishBytes(step: Step, answer: ReadAnswer): Promise<SubmitOutcome> {
    const stream = answer.stream === null ? null : await peekStream(answer.stream)
    if (answer.stream !== null && stream === null) return refuse(step, answer, { meaning: 'failed', isStated: false })
    return { outcome: 'finished', result: { ...toResult({ ...answer, stream }, step.model), ...toEvents(step) } }
  }

  function accept(step: Step, answer: ReadAnswer): SubmitOutcome {
    const task = step.operation.task
    if (task === null)
      return { outcome: 'finished', result: { ...toResult(answer, step.model), ...toInlineParts(step) } }
    const handle = readHandle(answer, step.operation.rules.name, task)
    const told = handle === null ? null : toTold(step, answer, handle)
    if (handle !== null && told !== null)
      return { outcome: 'accepted', handle: { ...handle }, pollAfterMs: task.rules.interval_ms, ...told }
    const message = 'the provider took the call but named no task'
    const about = { message, upstreamStatus: answer.status, generation: 'possible' as const }
    return { outcome: 'refused', refusal: { reason: 'failed', ...about } }
  }

  async function send(step: Step): Promise<SubmitOutcome> {
    const { call, options, access, model, operation } = step
    const { settings } = context
    const known = call.isRepeat === true ? await find(step) : null
    if (known !== null) return known
    const building = buildRequest(call, step, { settings, media: deps.media, signal: options.signal })
    const request = building instanceof Promise ? await building : building
    const streams = streamsOf(operation)
    const about = {
      ...options,
      model: call.model,
      kind: 'submit' as const,
      maxBytes: model.rules.max_answer_bytes ?? null,
    }
    const { answer, judgement } = await sendPatiently(
      () => callApi({ ...request, method: 'POST' }, access.key, { ...about, streams }),
      { ...options, judge: (candidate) => judge(step, candidate) },
      deps,
    )
    if (judgement !== null) {
      answer.stream?.destroy()
      return refuse(step, answer, judgement)
    }
    return streams === undefined ? accept(step, answer) : finishBytes(step, answer)
  }

  /** What became of an earlier submit of the same call; null: there was none, so this one is the first. */
  function find({ call, options, access, model, operation }: Step): Promise<SubmitOutcome | null> {
    const about = { ...options, model: call.model, kind: 'poll' as const, maxBytes: null }
    const ask = ({ method, target, body }: FetchTarget) =>
      callApi(
        { method, target, headers: body === null ? {} : { 'content-type': 'application/json' }, body },
        access.key,
        about,
      )
    return findTask({ call, operation, classify: model.classify, settings: context.settings, ask })
  }

  return send
}

function createTakeSlot({ rules, slots, concurrency }: ProviderContext, deps: DeclarativeDeps) {
  const slotKey = `provider ${rules.provider}`

  /** null: none came free before the deadline. Accounts with a key of their own take none of ours. */
  async function takeSlot({ options, access }: Pick<Step, 'options' | 'access'>): Promise<(() => void) | null> {
    if (access.isOwn) return () => {}
    const giveBack = await (slots.free > 0
      ? slots.take(options.signal)
      : slots.take(untilLate(options)).catch(() => null))
    if (giveBack === null) return null
    if (await takeOfAll(options)) return createRelease(giveBack)
    giveBack()
    return null
  }

  /** Made only for calls that wait: its timer stays until the deadline. */
  function untilLate({ signal, deadline }: SubmitOptions): AbortSignal {
    const late = AbortSignal.timeout(Math.max(1, deadline.getTime() - deps.clock.now().getTime()))
    return AbortSignal.any([signal, late])
  }

  /** One of those that all processes have together; those first in the line of this process ask until one is free. */
  async function takeOfAll(options: SubmitOptions): Promise<boolean> {
    if (await deps.counts.take(slotKey, concurrency)) return true
    const ending = untilLate(options)
    while (!ending.aborted) {
      await deps.sleep(ASK_AGAIN_MS, ending)
      if (!ending.aborted && (await deps.counts.take(slotKey, concurrency))) return true
    }
    return false
  }

  function createRelease(giveBack: () => void): () => void {
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      deps.counts.giveBack(slotKey)
      deps.counts.tell()
      giveBack()
    }
  }

  return takeSlot
}

/** What an answer of the provider means where it is not a success; null where it is one. */
function judge({ model, operation }: Step, answer: ReadAnswer): Judgement | null {
  if (answer.status >= 300) {
    const stated = model.classify(answer, 'error')
    return { meaning: stated ?? meaningOfStatus(answer.status), isStated: stated !== null }
  }
  const isFinal = operation.rules.returns === 'json'
  const isWhole = isFinal && hasOutput(answer.document, model)
  const found = model.classify(answer, 'ok', isWhole)
  if (found !== null) return { meaning: found, isStated: true }
  const failed: Judgement = { meaning: 'failed', isStated: false }
  if (answer.stream !== null) return null
  if (operation.rules.returns === 'events') return failed
  if (operation.rules.returns === 'bytes') return answer.bytes.length === 0 || answer.isJson ? failed : null
  return answer.isJson && isWhole === isFinal ? null : failed
}

function refused(refusal: Refusal): SubmitOutcome {
  return { outcome: 'refused', refusal }
}

/** Nothing where the caller does not follow the task itself; null: the answer is too large to be kept. */
function toTold({ call, operation, access }: Step, answer: ReadAnswer, handle: TaskHandle): { told?: ToldTask } | null {
  const { told } = operation.rules
  if (told === undefined) return {}
  const text = tellAnswer(answer.bytes, told, { ...handle.kept, id: handle.id })
  if (text === null || text.length > TOLD_MAX_LENGTH) return null
  return { told: { task: toTaskName(call.model.provider, handle.id), answer: hideKey(text, access.key) } }
}

/** Whether the caller wants inline media as addresses instead. */
function toInlineParts({ call, model }: Step): { inlineParts?: string } {
  const rule = model.rules.host_inline
  return rule !== undefined && call.input[rule.when] === true ? { inlineParts: rule.parts } : {}
}

type Refusal = Extract<SubmitOutcome, { outcome: 'refused' }>['refusal']

function streamsOf({ rules: { returns } }: CompiledOperation): 'bytes' | 'events' | undefined {
  return returns === 'bytes' || returns === 'events' ? returns : undefined
}

function toEvents({ operation, model, call }: Step): Pick<ProviderResult, 'events'> {
  return operation.rules.returns === 'events' ? { events: createEventReading(model, call.input) } : {}
}

/** The provider works for as long as it tells something. */
function onEnd(stream: Readable, release: () => void): void {
  finished(stream, { writable: false }, release)
}

function noKey(provider: string): Refusal {
  return unavailable(`no key for ${provider} is configured`, null)
}

function keyIsGone(provider: string): Refusal {
  const message = `your ${provider} key cannot be used: it was removed meanwhile, or this service cannot open it any more; save it again`
  return { reason: 'failed', message, upstreamStatus: null, generation: 'none' }
}

function noOperation(): Refusal {
  const message = 'no operation of this model takes such an input'
  return { reason: 'invalid', message, failures: null, upstreamStatus: null, generation: 'none' }
}

/** Failures of the network, and media that cannot be sent on. Anything else is a defect and is thrown. */
function toOutcome(error: unknown): SubmitOutcome {
  if (error instanceof FieldRefusal) {
    const { failure, message } = error
    const failures = failure === null ? null : [failure]
    return refused({ reason: 'invalid', message, failures, upstreamStatus: null, generation: 'none' })
  }
  if (!(error instanceof ExchangeError)) throw error
  const { message, status: upstreamStatus, wasSent, fault } = error
  if (fault === 'timeout' || fault === 'aborted') {
    return refused({ reason: 'timeout', message, upstreamStatus, generation: wasSent ? 'possible' : 'none' })
  }
  const generation = wasSent ? 'possible' : 'none'
  return refused({ reason: 'failed', message: `the provider failed: ${message}`, upstreamStatus, generation })
}

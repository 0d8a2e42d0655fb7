/**
 * Asks a hook of the operator whether a run may begin, or whether its outputs may be handed out. A question has a deadline that holds for
 * everything: the wait for a place, the first try, and the second one after a broken connection. Whatever is no clear answer is a failure
 * of the hook, and what follows from a failure is the operator's rule; nothing but the word `allow`, or that rule, lets anything through.
 */
import { type Clock, uptimeMs } from '../../../lib/clock.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/lossless-json.ts'
import type { Log } from '../../../lib/log.ts'
import { createSemaphore } from '../../../lib/waiting/semaphore.ts'
import { sleep } from '../../../lib/waiting/sleep.ts'

export type HookName = 'before_run' | 'before_outputs'

interface HookRules {
  readonly deadlineMs: number
  /** What a failure of the hook means. */
  readonly onFailure: 'refuse' | 'allow'
  /** How many questions may be open at a time in this process. */
  readonly atOnce: number
}

interface HookMessage {
  /** The same for every try of one question, and for the same question asked again after a crash. */
  readonly id: string
  readonly at: Date
  readonly body: string
}

/** Throws HookFault, also where the signal is aborted. */
export type CallHook = (
  message: HookMessage,
  options: { readonly timeoutMs: number; readonly signal: AbortSignal },
) => Promise<JsonValue>

/** There is no answer that counts. The message is for the operator's log. */
export class HookFault extends Error {
  /** The connection failed, so a second try may do better. */
  readonly mayPass: boolean
  constructor(
    message: string,
    { mayPass = false, cause }: { readonly mayPass?: boolean; readonly cause?: unknown } = {},
  ) {
    super(message, { cause })
    this.name = 'HookFault'
    this.mayPass = mayPass
  }
}

export type HookAnswer<Change> =
  /** `isChecked`: false where only the rule for failures lets it through. */
  | { readonly answer: 'allow'; readonly isChecked: boolean }
  | { readonly answer: 'refuse'; readonly message: string }
  | { readonly answer: 'change'; readonly change: Change }
  /** The hook failed, and the rule is to refuse. */
  | { readonly answer: 'failed' }

interface Question<Change> {
  readonly id: string
  /** JSON. */
  readonly data: string
  /** What the answer changes. Throws HookFault where it does not fit. */
  readChange(answer: JsonObject): Promise<Change>
  readonly signal: AbortSignal
}

/** Throws the reason of the signal once that is aborted. */
export type AskHook = <Change>(question: Question<Change>) => Promise<HookAnswer<Change>>

type HookOutcome = 'allowed' | 'refused' | 'changed' | 'failed'
export type HookObserver = (hook: HookName, outcome: HookOutcome, tookMs: number) => void

interface AskHookDeps {
  readonly name: HookName
  readonly rules: HookRules
  readonly call: CallHook
  /** Whether a question waits for a place, within its deadline, while too many are open; else it fails at once. */
  readonly waitsForPlace: boolean
  readonly observer: HookObserver
  readonly clock: Clock
  readonly log: Log
}

// A server that starts again needs a moment before it accepts connections.
const SECOND_TRY_AFTER_MS = 100

export function createAskHook(deps: AskHookDeps): AskHook {
  const { name, rules, call, observer, clock, log } = deps
  const places = createSemaphore(rules.atOnce)

  async function callTwice(message: HookMessage, untilMs: number, signal: AbortSignal): Promise<JsonValue> {
    const once = () => call(message, { timeoutMs: Math.max(1, untilMs - uptimeMs()), signal })
    try {
      return await once()
    } catch (error) {
      const isWorthIt = error instanceof HookFault && error.mayPass && uptimeMs() + SECOND_TRY_AFTER_MS < untilMs
      if (!isWorthIt || signal.aborted) throw error
      await sleep(SECOND_TRY_AFTER_MS, signal)
      return once()
    }
  }

  async function takePlace(signal: AbortSignal): Promise<() => void> {
    if (!deps.waitsForPlace && places.free === 0)
      throw new HookFault(`${rules.atOnce} questions are open already, and none of them has been answered`)
    const late = AbortSignal.timeout(rules.deadlineMs)
    try {
      return await places.take(AbortSignal.any([signal, late]))
    } catch (error) {
      throw late.aborted ? new HookFault(`no place became free within ${rules.deadlineMs} ms`, { cause: error }) : error
    }
  }

  return async function askHook({ id, data, readChange, signal }) {
    const startMs = uptimeMs()
    const count = (outcome: HookOutcome) => observer(name, outcome, uptimeMs() - startMs)
    const at = clock.now()
    const body = `{"type":"${name}","timestamp":"${at.toISOString()}","data":${data}}`
    try {
      const giveBack = await takePlace(signal)
      const answer = await callTwice({ id, at, body }, startMs + rules.deadlineMs, signal).finally(giveBack)
      const decision = isJsonObject(answer) ? answer['decision'] : null
      if (!isJsonObject(answer) || (decision !== 'allow' && decision !== 'refuse' && decision !== 'change'))
        throw new HookFault('its answer is no object with a decision of allow, refuse or change')
      const read = await readDecision(decision, answer, readChange)
      count(OUTCOME_OF[read.answer])
      return read
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof HookFault)) throw error
      count('failed')
      log.warn({ err: error, hook: name, question: id, rule: rules.onFailure }, 'a hook gave no answer that counts')
      return rules.onFailure === 'allow' ? { answer: 'allow', isChecked: false } : { answer: 'failed' }
    }
  }
}

const OUTCOME_OF = { allow: 'allowed', refuse: 'refused', change: 'changed' } as const

async function readDecision<Change>(
  decision: 'allow' | 'refuse' | 'change',
  answer: JsonObject,
  readChange: Question<Change>['readChange'],
) {
  if (decision === 'allow') return { answer: 'allow', isChecked: true } as const
  // A refusal without a proper text is a refusal all the same.
  if (decision === 'refuse') return { answer: 'refuse', message: toText(answer['message']) } as const
  return { answer: 'change', change: await readChange(answer) } as const
}

const MAX_TEXT = 1000
const UNPRINTABLE = /[\p{Cc}\p{Cs}\u202a-\u202e\u2066-\u2069]+/gu

/** What a caller is told. It comes from outside, and is shown in terminals and pages. */
function toText(message: JsonValue | undefined): string {
  const text = typeof message === 'string' ? message.replaceAll(UNPRINTABLE, ' ').trim() : ''
  return text === '' ? 'the operator of this service does not allow it' : [...text].slice(0, MAX_TEXT).join('')
}

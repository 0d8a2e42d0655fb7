/**
 * A provider in this process that does what a test tells it to, per model: it counts generations, waits until it is released,
 * refuses, fails, or loses its answer. The rest of the router is the real one.
 */
import type { Json, JsonRecord, Model } from '../../../src/domain/models/catalog/model.ts'
import { readModel } from '../../../src/domain/models/catalog/read-model.ts'
import type {
  PollOutcome,
  Provider,
  ProviderCall,
  ProviderRefusal,
  SubmitOutcome,
} from '../../../src/domain/models/provider.ts'

export interface FakeProvider extends Provider {
  /** Every submit that reached the provider, in order. */
  readonly submits: ProviderCall[]
  readonly polls: Json[]
  readonly canceled: Json[]
  /** Generations made: submits with the same key count once where the provider deduplicates. */
  generations(): number
  /** What the next submits of any model do; the last one stays. */
  answer(...outcomes: SubmitAnswer[]): void
  pollAnswer(...outcomes: PollAnswer[]): void
}

export type SubmitAnswer = SubmitOutcome | ((call: ProviderCall, signal: AbortSignal) => Promise<SubmitOutcome>)
export type PollAnswer = PollOutcome | ((handle: Json) => Promise<PollOutcome>)

export interface FakeProviderOptions {
  readonly name?: string
  readonly deduplicates?: boolean
  readonly access?: Provider['access']
}

export function createFakeProvider(options: FakeProviderOptions = {}): FakeProvider {
  const { name = 'fake', deduplicates = false, access = () => 'service_key' as const } = options
  const submits: ProviderCall[] = []
  const polls: Json[] = []
  const canceled: Json[] = []
  let submitAnswers: SubmitAnswer[] = [done({ ok: true })]
  let pollAnswers: PollAnswer[] = [{ outcome: 'pending', pollAfterMs: 10 }]
  const next = <Answer>(answers: Answer[]): Answer => (answers.length > 1 ? (answers.shift() as Answer) : answers[0])
  return {
    name,
    submits,
    polls,
    canceled,
    generations: () => (deduplicates ? new Set(submits.map(({ submitKey }) => submitKey)).size : submits.length),
    answer(...outcomes) {
      submitAnswers = outcomes
    },
    pollAnswer(...outcomes) {
      pollAnswers = outcomes
    },
    access,
    checkModel: () => [],
    deduplicates: () => deduplicates,
    async submit(call, { signal }) {
      submits.push(call)
      const answer = next(submitAnswers)
      return typeof answer === 'function' ? answer(call, signal) : answer
    },
    async poll({ handle }) {
      polls.push(handle)
      const answer = next(pollAnswers)
      return typeof answer === 'function' ? answer(handle) : answer
    },
    async cancel({ handle }) {
      canceled.push(handle)
    },
  }
}

/** A finished generation with this JSON document, or these bytes. */
export function done(body: object | Buffer, contentType = 'application/json'): SubmitOutcome & PollOutcome {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body))
  return { outcome: 'finished', result: { body: bytes, contentType, usage: null, costMicros: null } }
}

export function accepted(handle: Json, pollAfterMs = 10): SubmitOutcome {
  return { outcome: 'accepted', handle, pollAfterMs }
}

export function refusedBy(
  reason: ProviderRefusal['reason'],
  fields: Partial<Omit<ProviderRefusal, 'reason'>> & { failures?: null; costMicros?: number } = {},
): SubmitOutcome & PollOutcome {
  const common = {
    message: `the provider says ${reason}`,
    upstreamStatus: null,
    generation: 'none' as const,
    ...fields,
  }
  const own = {
    policy: { costMicros: null },
    invalid: { failures: null },
    failed: {},
    timeout: {},
    unavailable: { retryAfterSeconds: null },
    refused: { refusal: 'not_enabled' },
  }
  return { outcome: 'refused', refusal: { reason, ...own[reason], ...common } as ProviderRefusal }
}

/** A model of the fake provider from the fields of a data file; by default it takes anything and costs nothing. */
export function fakeModel(id: string, fields: JsonRecord = {}): Model {
  const { model, problems } = readModel({ id, price: { kind: 'free' }, ...fields })
  if (model === null) throw new Error(problems.join('\n'))
  return model
}

/** A promise that a test settles, and a submit that waits for it. */
export function gate(outcome: SubmitOutcome = done({ ok: true })) {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { open: resolve, answer: async (): Promise<SubmitOutcome> => promise.then(() => outcome) }
}

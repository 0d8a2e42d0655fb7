/** Model calls, exchanges with providers and webhooks as Prometheus metrics. Labels are providers and models of the catalogue, which bounds their number. */
import { Counter, Histogram, type Registry } from 'prom-client'
import { MICROS_PER_USD } from '../../../lib/text/usd.ts'
import type { ObserveExchange } from '../../adapters/providers/declarative/provider-context.ts'
import type { CallObserver } from '../../domain/models/calls/drive-call.ts'
import type { RouterRefusal } from '../../domain/models/router-error.ts'
import type { HookObserver } from '../../domain/moderation/ask-hook.ts'
import type { DeliveryObserver } from '../../domain/webhooks/deliver-webhooks.ts'

/** The published error type of a refusal, used as a label. */
export type ErrorTypeOf = (refusal: RouterRefusal) => string

// From an instant refusal to a long video.
const CALL_SECONDS = [0.05, 0.25, 1, 2.5, 5, 10, 30, 60, 120, 300, 600]

export function createCallObserver(registry: Registry, errorTypeOf: ErrorTypeOf): CallObserver {
  const { counter, histogram } = createSeries(registry)
  const ended = counter(
    'atelier_model_calls_total',
    'Model calls that were let in and have ended, by their error type; none for a result.',
    ['provider', 'model', 'error_type'],
  )
  const seconds = histogram('atelier_model_call_seconds', 'From dispatch to settlement.', {
    buckets: CALL_SECONDS,
    labelNames: ['provider', 'model'],
  })
  const charged = counter('atelier_model_charged_usd_total', 'What calls were charged.', ['provider', 'model'])
  const answered = counter(
    'atelier_model_answers_total',
    'Requests answered without a call of their own: replays and refusals.',
    ['provider', 'how', 'error_type'],
  )
  const polls = counter('atelier_model_polls_total', 'Questions to providers about generations under way.', [
    'provider',
    'outcome',
  ])
  const unresolved = counter('atelier_model_calls_unresolved_total', 'Calls whose outcome nobody knows.', [
    'provider',
    'model',
  ])
  const attempts = counter(
    'atelier_model_attempts_total',
    'Attempts of calls that have several providers, by how they ended.',
    ['provider', 'model', 'outcome'],
  )
  const fallbacks = counter('atelier_model_fallbacks_total', 'Calls that went on to another provider.', [
    ...(['from', 'to', 'reason'] as const),
  ])
  const toLabel = (refusal: RouterRefusal | null) => (refusal === null ? '' : errorTypeOf(refusal))
  return {
    ended({ provider, model, refusal, durationMs, chargedMicros }) {
      ended.inc({ provider, model, error_type: toLabel(refusal) })
      seconds.observe({ provider, model }, durationMs / 1000)
      if (chargedMicros !== null && chargedMicros > 0) charged.inc({ provider, model }, chargedMicros / MICROS_PER_USD)
    },
    answered: ({ provider, how, refusal }) => answered.inc({ provider, how, error_type: toLabel(refusal) }),
    polled: ({ provider, outcome }) => polls.inc({ provider, outcome }),
    attempted: (attempt) => attempts.inc(attempt),
    fellBack: (move) => fallbacks.inc(move),
    unresolved: ({ provider, model }) => unresolved.inc({ provider, model }),
  }
}

/** Counters and histograms of one registry. */
interface Scale<Label extends string> {
  /** Upper bounds in seconds. */
  readonly buckets: readonly number[]
  readonly labelNames?: readonly Label[]
}

export function createSeries(registry: Registry) {
  const registers = [registry]
  return {
    counter: <Label extends string = never>(name: string, help: string, labelNames: readonly Label[] = []) =>
      new Counter<Label>({ name, help, labelNames, registers }),
    histogram: <Label extends string = never>(name: string, help: string, { buckets, labelNames = [] }: Scale<Label>) =>
      new Histogram<Label>({ name, help, labelNames, buckets: [...buckets], registers }),
  }
}

/** Exchanges with providers as Prometheus series, by provider, step and what the provider's status was. */
export type { ObserveExchange }

const EXCHANGE_SECONDS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600]

export function createExchangeObserver(registry: Registry): ObserveExchange {
  const { counter, histogram } = createSeries(registry)
  const exchanges = counter(
    'atelier_provider_exchanges_total',
    'Requests to providers, by step and HTTP status; status none: no answer.',
    ['provider', 'kind', 'status'],
  )
  const seconds = histogram(
    'atelier_provider_exchange_seconds',
    'From sending a request to a provider until its answer is there.',
    { buckets: EXCHANGE_SECONDS, labelNames: ['provider', 'kind'] },
  )
  return ({ provider, kind, status, milliseconds }) => {
    exchanges.inc({ provider, kind, status: status === null ? 'none' : String(status) })
    seconds.observe({ provider, kind }, milliseconds / 1000)
  }
}

// Attempts to reach webhooks as Prometheus metrics. What waits is a gauge of the whole service.

const ATTEMPT_SECONDS = [0.025, 0.1, 0.5, 1, 2.5, 5, 10]

export function createDeliveryObserver(registry: Registry): DeliveryObserver {
  const { counter, histogram } = createSeries(registry)
  const attempts = counter('atelier_webhook_attempts_total', 'Attempts to reach webhooks, by what came of them.', [
    'outcome',
  ])
  const seconds = histogram('atelier_webhook_attempt_seconds', 'How long an attempt took.', {
    buckets: ATTEMPT_SECONDS,
  })
  const disabled = counter('atelier_webhooks_disabled_total', 'Webhooks that the service disabled, by reason.', [
    'reason',
  ])
  return {
    attempted(outcome, tookMs) {
      attempts.inc({ outcome })
      seconds.observe(tookMs / 1000)
    },
    disabled: (reason) => disabled.inc({ reason }),
  }
}

/** Every question has exactly one outcome, so their sum is how often a hook was asked. */
export function createHookObserver(registry: Registry): HookObserver {
  const { counter, histogram } = createSeries(registry)
  const asked = counter('atelier_moderation_total', 'Questions to the hooks of moderation, by what came of them.', [
    ...(['hook', 'outcome'] as const),
  ])
  const seconds = histogram('atelier_moderation_seconds', 'How long the answer to such a question took.', {
    buckets: ATTEMPT_SECONDS,
    labelNames: ['hook'],
  })
  return (hook, outcome, tookMs) => {
    asked.inc({ hook, outcome })
    seconds.observe({ hook }, tookMs / 1000)
  }
}

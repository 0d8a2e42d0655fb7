/** Model calls as Prometheus metrics. Labels are providers and models of the catalogue, which bounds their number. */
import type { Registry } from 'prom-client'
import { MICROS_PER_USD } from '../../../lib/text/usd.ts'
import type { CallObserver } from '../../domain/models/calls/drive-call.ts'
import type { RouterRefusal } from '../../domain/models/router-error.ts'
import { createSeries } from './series.ts'

/** The published error type of a refusal, used as a label. */
export type ErrorTypeOf = (refusal: RouterRefusal) => string

// From an instant refusal to a long video.
const SECONDS = [0.05, 0.25, 1, 2.5, 5, 10, 30, 60, 120, 300, 600]

export function createCallObserver(registry: Registry, errorTypeOf: ErrorTypeOf): CallObserver {
  const { counter, histogram } = createSeries(registry)
  const ended = counter(
    'atelier_model_calls_total',
    'Model calls that were let in and have ended, by their error type; none for a result.',
    ['provider', 'model', 'error_type'],
  )
  const seconds = histogram('atelier_model_call_seconds', 'From dispatch to settlement.', {
    buckets: SECONDS,
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
  const toLabel = (refusal: RouterRefusal | null) => (refusal === null ? '' : errorTypeOf(refusal))
  return {
    ended({ provider, model, refusal, durationMs, chargedMicros }) {
      ended.inc({ provider, model, error_type: toLabel(refusal) })
      seconds.observe({ provider, model }, durationMs / 1000)
      if (chargedMicros !== null && chargedMicros > 0) charged.inc({ provider, model }, chargedMicros / MICROS_PER_USD)
    },
    answered: ({ provider, how, refusal }) => answered.inc({ provider, how, error_type: toLabel(refusal) }),
    polled: ({ provider, outcome }) => polls.inc({ provider, outcome }),
    unresolved: ({ provider, model }) => unresolved.inc({ provider, model }),
  }
}

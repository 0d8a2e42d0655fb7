/** Model calls as Prometheus metrics. Labels are providers and models of the catalogue, which bounds their number. */
import { Counter, Histogram, type Registry } from 'prom-client'
import { MICROS_PER_USD } from '../../../lib/text/usd.ts'
import type { CallObserver } from '../../domain/models/calls/drive-call.ts'
import type { RouterRefusal } from '../../domain/models/router-error.ts'

/** The published error type of a refusal, used as a label. */
export type ErrorTypeOf = (refusal: RouterRefusal) => string

// From an instant refusal to a long video.
const SECONDS = [0.05, 0.25, 1, 2.5, 5, 10, 30, 60, 120, 300, 600]

export function createCallObserver(registry: Registry, errorTypeOf: ErrorTypeOf): CallObserver {
  const registers = [registry]
  const ended = new Counter({
    name: 'atelier_model_calls_total',
    help: 'Model calls that were let in and have ended, by their error type; none for a result.',
    labelNames: ['provider', 'model', 'error_type'],
    registers,
  })
  const seconds = new Histogram({
    name: 'atelier_model_call_seconds',
    help: 'From dispatch to settlement.',
    labelNames: ['provider', 'model'],
    buckets: SECONDS,
    registers,
  })
  const charged = new Counter({
    name: 'atelier_model_charged_usd_total',
    help: 'What calls were charged.',
    labelNames: ['provider', 'model'],
    registers,
  })
  const answered = new Counter({
    name: 'atelier_model_answers_total',
    help: 'Requests answered without a call of their own: replays and refusals.',
    labelNames: ['provider', 'how', 'error_type'],
    registers,
  })
  const polls = new Counter({
    name: 'atelier_model_polls_total',
    help: 'Questions to providers about generations under way.',
    labelNames: ['provider', 'outcome'],
    registers,
  })
  const unresolved = new Counter({
    name: 'atelier_model_calls_unresolved_total',
    help: 'Calls whose outcome nobody knows.',
    labelNames: ['provider', 'model'],
    registers,
  })
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

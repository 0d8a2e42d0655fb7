/** Model calls as Prometheus counters. Labels are providers and catalogued models, so there are never more than the catalogue has. */
import { Counter, Histogram, type Registry } from 'prom-client'
import { MICROS_PER_USD } from '../../domain/credits/micros.ts'
import type { CallObserver } from '../../domain/models/call-observer.ts'

// From an instant refusal to a film.
const SECONDS = [0.05, 0.25, 1, 2.5, 5, 10, 30, 60, 120, 300, 600]

export function createCallObserver(registry: Registry): CallObserver {
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
  return {
    ended({ provider, model, errorType, durationMs, chargedMicros }) {
      ended.inc({ provider, model, error_type: errorType ?? '' })
      seconds.observe({ provider, model }, durationMs / 1000)
      if (chargedMicros !== null && chargedMicros > 0) charged.inc({ provider, model }, chargedMicros / MICROS_PER_USD)
    },
    answered: ({ provider, how, errorType }) => answered.inc({ provider, how, error_type: errorType ?? '' }),
    polled: ({ provider, outcome }) => polls.inc({ provider, outcome }),
    unresolved: ({ provider, model }) => unresolved.inc({ provider, model }),
  }
}

/** Exchanges with providers as Prometheus series, by provider, step and what the provider's status was. */
import type { Registry } from 'prom-client'
import type { ObserveExchange } from '../../adapters/providers/declarative/provider-context.ts'
import { createSeries } from './series.ts'

export type { ObserveExchange }

const SECONDS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600]

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
    { buckets: SECONDS, labelNames: ['provider', 'kind'] },
  )
  return ({ provider, kind, status, milliseconds }) => {
    exchanges.inc({ provider, kind, status: status === null ? 'none' : String(status) })
    seconds.observe({ provider, kind }, milliseconds / 1000)
  }
}

/** Exchanges with providers as Prometheus series, by provider, step and what the provider's status was. */
import { Counter, Histogram, type Registry } from 'prom-client'
import type { ObserveExchange } from '../../adapters/providers/declarative/provider-context.ts'

export type { ObserveExchange }

const SECONDS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600]

export function createExchangeObserver(registry: Registry): ObserveExchange {
  const registers = [registry]
  const exchanges = new Counter({
    name: 'atelier_provider_exchanges_total',
    help: 'Requests to providers, by step and HTTP status; status none: no answer.',
    labelNames: ['provider', 'kind', 'status'],
    registers,
  })
  const seconds = new Histogram({
    name: 'atelier_provider_exchange_seconds',
    help: 'From sending a request to a provider until its answer is there.',
    labelNames: ['provider', 'kind'],
    buckets: SECONDS,
    registers,
  })
  return ({ provider, kind, status, milliseconds }) => {
    exchanges.inc({ provider, kind, status: status === null ? 'none' : String(status) })
    seconds.observe({ provider, kind }, milliseconds / 1000)
  }
}

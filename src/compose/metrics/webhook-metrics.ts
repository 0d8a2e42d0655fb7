/** Attempts to reach webhooks as Prometheus metrics. What waits is a gauge of the whole service. */
import type { Registry } from 'prom-client'
import type { DeliveryObserver } from '../../domain/webhooks/deliver-webhooks.ts'
import { createSeries } from './series.ts'

const SECONDS = [0.025, 0.1, 0.5, 1, 2.5, 5, 10]

export function createDeliveryObserver(registry: Registry): DeliveryObserver {
  const { counter, histogram } = createSeries(registry)
  const attempts = counter('atelier_webhook_attempts_total', 'Attempts to reach webhooks, by what came of them.', [
    'outcome',
  ])
  const seconds = histogram('atelier_webhook_attempt_seconds', 'How long an attempt took.', { buckets: SECONDS })
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

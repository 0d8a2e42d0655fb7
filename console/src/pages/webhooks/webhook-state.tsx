import type { Delivery, Webhook } from '../../api/webhooks.ts'
import { type StateLook, StatePill } from '../../components/status-pill.tsx'

const WEBHOOK_LOOKS: Readonly<Record<Webhook['status'] | 'failing', StateLook>> = {
  enabled: ['check', 'On', 'succeeded'],
  failing: ['warn', 'Failing', 'canceling'],
  paused: ['pause', 'Paused', 'queued'],
  disabled: ['stop', 'Disabled', 'failed'],
}

export function WebhookState({ webhook: { status, failing_since: since } }: { readonly webhook: Webhook }) {
  return <StatePill look={WEBHOOK_LOOKS[status === 'enabled' && since !== null ? 'failing' : status]} />
}

const DELIVERY_LOOKS: Readonly<Record<Delivery['status'], StateLook>> = {
  pending: ['clock', 'Waiting', 'queued'],
  delivered: ['check', 'Delivered', 'succeeded'],
  failed: ['cross', 'Given up', 'failed'],
}

export function DeliveryState({ status }: { readonly status: Delivery['status'] }) {
  return <StatePill look={DELIVERY_LOOKS[status]} />
}

/** What a webhook is: its address, and what it is told of. */
import { type Signal, useSignal } from '@preact/signals'
import { ApiError } from '../../api/client.ts'
import type { Delivery, Webhook, WebhookWish } from '../../api/webhooks.ts'
import { Dialog } from '../../components/overlay/dialog.tsx'
import { ErrorBox, type StateLook, StatePill } from '../../components/state.tsx'

const EVENTS: Readonly<Record<string, string>> = {
  'job.succeeded': 'a job succeeded',
  'job.failed': 'a job failed',
  'job.canceled': 'a job was canceled',
  'job.expired': 'a job expired',
  'model_call.completed': 'a queued model call has ended',
  'credits.low': 'credits run low',
  'budget.threshold': 'a budget nears its limit',
  'job.queued': 'a job was accepted',
  'job.started': 'a job began to run',
  'output.created': 'an output is there',
  'webhook.disabled': 'another webhook was disabled',
}
const USUAL = 7
const DEFAULT_LOW_USD = 5

interface WebhookFormProps {
  /** null: a new one. */
  readonly webhook: Webhook | null
  readonly onClose: () => void
  /** May refuse. */
  readonly save: (wish: WebhookWish) => Promise<void>
}

export function WebhookForm({ webhook, onClose, save }: WebhookFormProps) {
  const url = useSignal(webhook?.url ?? '')
  const description = useSignal(webhook?.description ?? '')
  const events = useSignal<ReadonlySet<string>>(new Set(webhook?.events ?? Object.keys(EVENTS).slice(0, USUAL)))
  const low = useSignal(String(webhook === null ? DEFAULT_LOW_USD : (webhook.credits_low_usd ?? '')))
  const error = useSignal<ApiError | null>(null)
  async function submit(event: Event): Promise<void> {
    event.preventDefault()
    const usd = low.value.trim()
    try {
      await save({
        url: url.value.trim(),
        description: description.value.trim(),
        events: [...events.value],
        credits_low_usd: usd === '' ? null : Number(usd),
      })
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown
      error.value = thrown
    }
  }
  return (
    <Dialog title={webhook === null ? 'New webhook' : 'Change the webhook'} onClose={onClose}>
      <form class="stack" onSubmit={(event) => void submit(event)}>
        <label for="webhook-url">Address that is called</label>
        <input
          id="webhook-url"
          type="url"
          required
          maxLength={2048}
          placeholder="https://example.com/hooks"
          value={url.value}
          onInput={(event) => {
            url.value = event.currentTarget.value
          }}
        />
        <label for="webhook-description">What it is for</label>
        <input
          id="webhook-description"
          type="text"
          maxLength={200}
          value={description.value}
          onInput={(event) => {
            description.value = event.currentTarget.value
          }}
        />
        <EventChoice events={events} />
        {events.value.has('credits.low') && (
          <>
            <label for="webhook-low">Credits are low below, in USD</label>
            <input
              id="webhook-low"
              type="number"
              min="0"
              step="any"
              value={low.value}
              onInput={(event) => {
                low.value = event.currentTarget.value
              }}
            />
          </>
        )}
        {error.value !== null && <ErrorBox error={error.value} />}
        <div class="dialog-deeds">
          <button type="submit" class="button primary" disabled={events.value.size === 0}>
            {webhook === null ? 'Make the webhook' : 'Save'}
          </button>
        </div>
      </form>
    </Dialog>
  )
}

function EventChoice({ events }: { readonly events: Signal<ReadonlySet<string>> }) {
  function choose(name: string, isChosen: boolean): void {
    const next = new Set(events.value)
    if (isChosen) next.add(name)
    else next.delete(name)
    events.value = next
  }
  return (
    <fieldset class="choice choice-column">
      <legend>Told when</legend>
      {Object.entries(EVENTS).map(([name, words]) => (
        <label key={name}>
          <input
            type="checkbox"
            checked={events.value.has(name)}
            onChange={(event) => choose(name, event.currentTarget.checked)}
          />
          <span>
            {words} <code class="dim">{name}</code>
          </span>
        </label>
      ))}
    </fieldset>
  )
}

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

/** One webhook: how it does, what was sent to it, and what can be done about it. */
import { useSignal } from '@preact/signals'
import { ApiError } from '../../api/client.ts'
import {
  changeWebhook,
  deleteWebhook,
  getWebhook,
  rotateWebhook,
  testWebhook,
  type Webhook,
} from '../../api/webhooks.ts'
import { Moment } from '../../components/figures.tsx'
import { KeyValue } from '../../components/key-value.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { confirm } from '../../components/overlay/confirm.tsx'
import { RotateSecret } from '../../components/overlay/rotate-secret.tsx'
import { showSecretOnce } from '../../components/overlay/secret-once.tsx'
import { showToast } from '../../components/overlay/toast.tsx'
import { Skeleton } from '../../components/skeleton.tsx'
import { Words } from '../../components/words.tsx'
import { navigate } from '../../routes.ts'
import { type Resource, useResource } from '../../state/resource.ts'
import { Deliveries } from './deliveries.tsx'
import { WebhookForm } from './webhook-form.tsx'
import { WebhookState } from './webhook-state.tsx'

const REASONS: Readonly<Record<NonNullable<Webhook['disabled_reason']>, string>> = {
  gone: 'it answered 410: it wants no more messages',
  failing: 'nothing arrived there for as long as messages are tried',
}

export function WebhookPage({ id = '' }: Readonly<Record<string, string>>) {
  const resource = useResource(`webhook ${id}`, (signal) => getWebhook(id, signal))
  return (
    <section class="page webhook">
      <h1>
        <Words text={resource.data.value?.description || 'Webhook'} />
      </h1>
      <Loaded resource={resource} skeleton={<Skeleton rows={6} />}>
        {(webhook) => <OneWebhook webhook={webhook} resource={resource} />}
      </Loaded>
    </section>
  )
}

/** Refusals are told in passing: the page stays as it is. */
async function told(deed: () => Promise<unknown>): Promise<void> {
  try {
    await deed()
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    showToast(error.message)
  }
}

interface OneWebhookProps {
  readonly webhook: Webhook
  readonly resource: Resource<Webhook>
}

function OneWebhook({ webhook, resource }: OneWebhookProps) {
  const { id, url, description, status } = webhook
  const open = useSignal<'form' | 'rotate' | null>(null)
  const sent = useSignal(0)
  const close = () => {
    open.value = null
  }
  const change = (next: 'enabled' | 'paused') =>
    told(async () => {
      await changeWebhook(id, { status: next })
      resource.reload()
    })
  async function remove(): Promise<void> {
    const isMeant = await confirm({
      title: 'Delete the webhook?',
      text: 'Messages that wait are not sent any more, and what was sent is forgotten.',
      deed: 'Delete',
      isDangerous: true,
    })
    if (isMeant)
      await told(async () => {
        await deleteWebhook(id)
        navigate('/webhooks')
      })
  }
  return (
    <>
      <div class="page-head">
        <WebhookState webhook={webhook} />
        <span class="head-deeds">
          <button
            type="button"
            class="button"
            disabled={status !== 'enabled'}
            onClick={() =>
              void told(async () => {
                await testWebhook(id)
                sent.value += 1
              })
            }
          >
            Send a test
          </button>
          <button type="button" class="button" onClick={() => void change(status === 'enabled' ? 'paused' : 'enabled')}>
            {status === 'enabled' ? 'Pause' : 'Turn on'}
          </button>
          <button type="button" class="button" onClick={() => (open.value = 'form')}>
            Change…
          </button>
          <button type="button" class="button" onClick={() => (open.value = 'rotate')}>
            Rotate…
          </button>
          <button type="button" class="button danger" onClick={() => void remove()}>
            Delete
          </button>
        </span>
      </div>
      <Facts webhook={webhook} />
      <Deliveries key={sent.value} webhookId={id} />
      {open.value === 'form' && (
        <WebhookForm
          webhook={webhook}
          onClose={close}
          save={async (wish) => {
            await changeWebhook(id, wish)
            close()
            resource.reload()
          }}
        />
      )}
      {open.value === 'rotate' && (
        <RotateSecret
          name={description === '' ? url : description}
          about="The webhook keeps its address and its history."
          rotate={(overlap) => rotateWebhook(id, overlap)}
          onClose={close}
          onRotated={(secret, about) => {
            close()
            showSecretOnce('secret', secret, about)
            resource.reload()
          }}
        />
      )}
    </>
  )
}

function Facts({ webhook }: { readonly webhook: Webhook }) {
  const { url, events, failing_since: failing, secret_overlap_until: overlap } = webhook
  const { disabled_at: disabledAt, disabled_reason: reason } = webhook
  return (
    <KeyValue
      pairs={[
        ['Address', <Words key="url" text={url} />],
        ['Told of', events.join(', ')],
        ['Former secret signs until', overlap !== null && <Moment key="until" at={overlap} />],
        ['Fails since', failing !== null && <Moment key="failing" at={failing} />],
        [
          'Disabled',
          disabledAt !== null && (
            <span key="disabled">
              <Moment at={disabledAt} />
              {reason !== null && `: ${REASONS[reason]}`}
            </span>
          ),
        ],
      ]}
    />
  )
}

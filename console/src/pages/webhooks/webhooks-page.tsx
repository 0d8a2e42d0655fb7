/** The webhooks of the account. */
import { createWebhook, listWebhooks, type Webhook } from '../../api/webhooks.ts'
import { Icon } from '../../components/icon.tsx'
import { showSecretOnce } from '../../components/overlay/dialog.tsx'
import { EmptyState, Loaded, Skeleton } from '../../components/state.tsx'
import { Ago, Words } from '../../components/text.tsx'
import { hrefOf, query, setQuery } from '../../routes.ts'
import { useResource } from '../../state/resource.ts'
import { WebhookForm, WebhookState } from './webhook-form.tsx'

export function WebhooksPage() {
  const resource = useResource('webhooks', listWebhooks)
  const isMaking = query.value.get('new') === '1'
  const openNew = () => setQuery({ new: '1' })
  const closeNew = () => setQuery({ new: null }, { replace: true })
  return (
    <section class="page webhooks">
      <div class="page-head">
        <h1>Webhooks</h1>
        <button type="button" class="button primary" onClick={openNew}>
          <Icon name="plus" /> New webhook
        </button>
      </div>
      <Loaded resource={resource} skeleton={<Skeleton rows={3} />}>
        {({ webhooks }) =>
          webhooks.length === 0 ? (
            <EmptyState title="No webhooks yet">
              <p class="dim">
                A webhook is an address of yours that is called when a job ends, a queued model call has its result, or
                credits run low. Every call is signed, and repeated until it arrives.
              </p>
              <button type="button" class="button primary" onClick={openNew}>
                Make the first one
              </button>
            </EmptyState>
          ) : (
            <ul class="plain-list card-list">
              {webhooks.map((webhook) => (
                <OneWebhook key={webhook.id} webhook={webhook} />
              ))}
            </ul>
          )
        }
      </Loaded>
      {isMaking && (
        <WebhookForm
          webhook={null}
          onClose={closeNew}
          save={async (wish) => {
            const { secret } = await createWebhook(wish)
            closeNew()
            showSecretOnce('secret', secret, 'Your program verifies with it that a call comes from here.')
            resource.reload()
          }}
        />
      )}
    </section>
  )
}

function OneWebhook({ webhook }: { readonly webhook: Webhook }) {
  const { id, url, description, events, created_at: createdAt } = webhook
  return (
    <li>
      <span class="asset-name">
        <a href={hrefOf(`/webhooks/${encodeURIComponent(id)}`)}>
          <Words text={description === '' ? url : description} />
        </a>
        <span class="dim">
          {description !== '' && (
            <>
              <Words text={url} />
              {' · '}
            </>
          )}
          {events.join(', ')} · made <Ago at={createdAt} />
        </span>
      </span>
      <WebhookState webhook={webhook} />
    </li>
  )
}

/** One webhook: how it does, what was sent to it, and what can be done about it. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import {
  changeWebhook,
  type Delivery,
  deleteWebhook,
  getDelivery,
  getWebhook,
  listDeliveries,
  replayDelivery,
  rotateWebhook,
  testWebhook,
  type Webhook,
} from '../../api/webhooks.ts'
import { confirm, Dialog, RotateSecret, showSecretOnce } from '../../components/overlay/dialog.tsx'
import { EmptyState, Loaded, Skeleton } from '../../components/state.tsx'
import { LoadedTable, type PlainColumn } from '../../components/table/plain-table.tsx'
import { StateFilter } from '../../components/tabs/tabs.tsx'
import { Ago, KeyValue, Moment, showToast, Words } from '../../components/text.tsx'
import { hrefOf, navigate, query, setQuery } from '../../routes.ts'
import { tell } from '../../state/deeds.ts'
import { type Resource, useResource } from '../../state/resource.ts'
import { DeliveryState, WebhookForm, WebhookState } from './webhook-form.tsx'

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

interface OneWebhookProps {
  readonly webhook: Webhook
  readonly resource: Resource<Webhook>
}

function OneWebhook({ webhook, resource }: OneWebhookProps) {
  const { id, url, description } = webhook
  const open = useSignal<'form' | 'rotate' | null>(null)
  const sent = useSignal(0)
  const close = () => {
    open.value = null
  }
  return (
    <>
      <div class="page-head">
        <WebhookState webhook={webhook} />
        <Deeds
          webhook={webhook}
          onTested={() => {
            sent.value += 1
          }}
          onChanged={resource.reload}
          onOpen={(dialog) => {
            open.value = dialog
          }}
        />
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

interface DeedsProps {
  readonly webhook: Webhook
  readonly onTested: () => void
  readonly onChanged: () => void
  readonly onOpen: (dialog: 'form' | 'rotate') => void
}

function Deeds({ webhook: { id, status }, onTested, onChanged, onOpen }: DeedsProps) {
  const isOn = status === 'enabled'
  const change = () =>
    tell(async () => {
      await changeWebhook(id, { status: isOn ? 'paused' : 'enabled' })
      onChanged()
    })
  async function remove(): Promise<void> {
    const isMeant = await confirm({
      title: 'Delete the webhook?',
      text: 'Messages that wait are not sent any more, and what was sent is forgotten.',
      deed: 'Delete',
      isDangerous: true,
    })
    if (isMeant)
      await tell(async () => {
        await deleteWebhook(id)
        navigate('/webhooks')
      })
  }
  const test = () =>
    tell(async () => {
      await testWebhook(id)
      onTested()
    })
  return (
    <span class="head-deeds">
      <button type="button" class="button" disabled={!isOn} onClick={() => void test()}>
        Send a test
      </button>
      <button type="button" class="button" onClick={() => void change()}>
        {isOn ? 'Pause' : 'Turn on'}
      </button>
      <button type="button" class="button" onClick={() => onOpen('form')}>
        Change…
      </button>
      <button type="button" class="button" onClick={() => onOpen('rotate')}>
        Rotate…
      </button>
      <button type="button" class="button danger" onClick={() => void remove()}>
        Delete
      </button>
    </span>
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

const STATES = { '': 'All', pending: 'Waiting', delivered: 'Delivered', failed: 'Given up' } as const
const PAGE_SIZE = 50
const LOOK_AGAIN_MS = 2000

const COLUMNS: readonly PlainColumn<Delivery>[] = [
  {
    label: 'Message',
    cell: ({ id, type }) => (
      <button type="button" class="link-button" onClick={() => setQuery({ message: id })}>
        {type}
      </button>
    ),
  },
  { label: 'State', cell: ({ status }) => <DeliveryState status={status} /> },
  { label: 'About', cell: ({ type, job_id: id }) => <Subject type={type} id={id} /> },
  { label: 'Happened', cell: ({ occurred_at: at }) => <Ago at={at} /> },
  { label: 'Attempts', cell: ({ attempts }) => attempts, isNumber: true },
  { label: 'Next', cell: ({ next_attempt_at: at }) => (at === null ? '' : <Moment at={at} />) },
]

function Subject({ type, id }: { readonly type: string; readonly id: string }) {
  const isJob = type.startsWith('job.') || type.startsWith('output.')
  return isJob ? <a href={hrefOf(`/jobs/${encodeURIComponent(id)}`)}>{id}</a> : <Words text={id} />
}

/** Messages to a webhook, newest first; one that is opened shows each attempt and can be sent again. */
function Deliveries({ webhookId }: { readonly webhookId: string }) {
  const wanted = query.value.get('status') ?? ''
  const state = wanted in STATES ? wanted : ''
  const before = query.value.get('before')
  const opened = query.value.get('message')
  const asked = new URLSearchParams({ webhook_id: webhookId, limit: String(PAGE_SIZE) })
  if (state !== '') asked.set('status', state)
  if (before !== null) asked.set('before', before)
  const resource = useResource(`deliveries ${asked}`, (signal) => listDeliveries(asked, signal))
  const here = `/webhooks/${encodeURIComponent(webhookId)}`
  const addressOf = (value: string) => (value === '' ? here : `${here}?status=${value}`)
  const next = resource.data.value?.next ?? null
  const isOnItsWay = resource.data.value?.deliveries.some(({ status }) => status === 'pending') ?? false
  const { reload } = resource
  const loadedAt = resource.at.value
  useEffect(() => {
    if (!isOnItsWay) return
    const timer = setTimeout(reload, LOOK_AGAIN_MS)
    return () => clearTimeout(timer)
  }, [isOnItsWay, loadedAt, reload])
  return (
    <>
      <h2>Messages</h2>
      <StateFilter states={STATES} state={state} addressOf={addressOf} onReload={resource.reload} />
      <LoadedTable
        label="Messages"
        columns={COLUMNS}
        resource={resource}
        rowsOf={({ deliveries }) => deliveries}
        keyOf={({ id }) => id}
        empty={<EmptyState title={state === '' ? 'Nothing was sent yet' : 'No messages in this state'} />}
      />
      {next !== null && (
        <button type="button" class="button" onClick={() => setQuery({ before: next })}>
          Older
        </button>
      )}
      {opened !== null && (
        <OneDelivery
          id={opened}
          onClose={() => setQuery({ message: null }, { replace: true })}
          onReplay={resource.reload}
        />
      )}
    </>
  )
}

interface OneDeliveryProps {
  readonly id: string
  readonly onClose: () => void
  readonly onReplay: () => void
}

function OneDelivery({ id, onClose, onReplay }: OneDeliveryProps) {
  const resource = useResource(`delivery ${id}`, (signal) => getDelivery(id, signal))
  async function replay(): Promise<void> {
    await tell(async () => {
      await replayDelivery(id)
      onReplay()
      onClose()
      showToast('It is sent again.')
    })
  }
  return (
    <Dialog title="Message" size="large" onClose={onClose}>
      <Loaded resource={resource} skeleton={<Skeleton rows={4} />}>
        {({ type, status, attempt_list: attempts }) => (
          <>
            <p>
              {type} <DeliveryState status={status} /> <code>{id}</code>
            </p>
            {attempts.length === 0 && <p class="dim">It was not tried yet.</p>}
            <ol class="plain-list card-list">
              {attempts.map((attempt) => (
                <li key={attempt.number}>
                  <span class="asset-name">
                    <span>
                      Attempt {attempt.number}: {attempt.outcome}
                      {attempt.http_status !== null && `, answered ${attempt.http_status}`} after {attempt.duration_ms}{' '}
                      ms
                    </span>
                    <span class="dim">
                      <Moment at={attempt.at} />
                    </span>
                    {attempt.response !== null && attempt.response !== '' && (
                      <pre class="response">
                        <Words text={attempt.response} isBlock />
                      </pre>
                    )}
                  </span>
                </li>
              ))}
            </ol>
          </>
        )}
      </Loaded>
      <div class="dialog-deeds">
        <button type="button" class="button primary" onClick={() => void replay()}>
          Send again
        </button>
      </div>
    </Dialog>
  )
}

/** Messages to a webhook, newest first; one that is opened shows each attempt and can be sent again. */

import { useEffect } from 'preact/hooks'
import { ApiError } from '../../api/client.ts'
import { type Delivery, getDelivery, listDeliveries, replayDelivery } from '../../api/webhooks.ts'
import { EmptyState } from '../../components/empty-state.tsx'
import { Ago, Moment } from '../../components/figures.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Dialog } from '../../components/overlay/dialog.tsx'
import { showToast } from '../../components/overlay/toast.tsx'
import { Skeleton } from '../../components/skeleton.tsx'
import { LoadedTable, type PlainColumn } from '../../components/table/plain-table.tsx'
import { StateFilter } from '../../components/tabs/state-filter.tsx'
import { Words } from '../../components/words.tsx'
import { hrefOf, query, setQuery } from '../../routes.ts'
import { useResource } from '../../state/resource.ts'
import { DeliveryState } from './webhook-state.tsx'

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

export function Deliveries({ webhookId }: { readonly webhookId: string }) {
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
    try {
      await replayDelivery(id)
      onReplay()
      onClose()
      showToast('It is sent again.')
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      showToast(error.message)
    }
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

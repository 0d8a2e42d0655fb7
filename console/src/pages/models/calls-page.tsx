/** Calls of models: those that wait or run, and for a day those that came through the queue or can be asked for again. */
import { useSignal } from '@preact/signals'
import { ApiError } from '../../api/client.ts'
import { type CallRow, listCalls } from '../../api/models.ts'
import { EmptyState, ErrorBox, Loaded, Skeleton } from '../../components/state.tsx'
import { TableWrap } from '../../components/table/plain-table.tsx'
import { StateFilter } from '../../components/tabs/tabs.tsx'
import { Ago, Duration, Money, Words } from '../../components/text.tsx'
import { hrefOf, query } from '../../routes.ts'
import { useResource } from '../../state/resource.ts'
import { ModelTabs } from './models-page.tsx'

const STATES = {
  '': 'All',
  queued: 'Waiting',
  running: 'Running',
  succeeded: 'Succeeded',
  failed: 'Failed',
  canceled: 'Canceled',
} as const

function addressOf(state: string): string {
  return state === '' ? '/models/calls' : `/models/calls?state=${state}`
}

export function CallsPage() {
  const wanted = query.value.get('state') ?? ''
  const state = wanted in STATES ? wanted : ''
  const asked = new URLSearchParams(state === '' ? {} : { state })
  const resource = useResource(`calls ${state}`, (signal) => listCalls(asked, signal))
  return (
    <section class="page calls">
      <h1>Calls</h1>
      <ModelTabs here="calls" />
      <StateFilter states={STATES} state={state} addressOf={addressOf} onReload={resource.reload} />
      <Loaded resource={resource} skeleton={<Skeleton rows={8} />}>
        {({ calls, next_cursor: cursor }) => (
          <Calls key={`${state} ${resource.at.value}`} state={state} first={calls} cursor={cursor} />
        )}
      </Loaded>
    </section>
  )
}

interface CallsProps {
  readonly state: string
  readonly first: readonly CallRow[]
  readonly cursor: string | null
}

function Calls({ state, first, cursor }: CallsProps) {
  const more = useSignal<readonly CallRow[]>([])
  const next = useSignal(cursor)
  const error = useSignal<ApiError | null>(null)
  const isLoading = useSignal(false)
  async function loadMore(): Promise<void> {
    // A second click before the answer would show the same page twice.
    if (isLoading.value) return
    isLoading.value = true
    const asked = new URLSearchParams({ ...(state !== '' && { state }), cursor: next.value ?? '' })
    try {
      const page = await listCalls(asked)
      more.value = [...more.value, ...page.calls]
      next.value = page.next_cursor
      error.value = null
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown
      error.value = thrown
    } finally {
      isLoading.value = false
    }
  }
  const calls = [...first, ...more.value]
  if (calls.length === 0)
    return (
      <EmptyState title={state === '' ? 'No calls' : 'No calls in this state'}>
        <p class="dim">
          Calls that were answered at once and cannot be asked for again leave no record but their charge.
        </p>
      </EmptyState>
    )
  return (
    <>
      <TableWrap label="Calls of models">
        <table class="plain-table">
          <thead>
            <tr>
              <th scope="col">Model</th>
              <th scope="col">State</th>
              <th scope="col">Request</th>
              <th scope="col">Made</th>
              <th scope="col" class="right">
                Time
              </th>
              <th scope="col" class="right">
                Cost
              </th>
            </tr>
          </thead>
          <tbody>
            {calls.map((call) => (
              <OneCall key={call.request_id} call={call} />
            ))}
          </tbody>
        </table>
      </TableWrap>
      {error.value !== null && <ErrorBox error={error.value} />}
      {next.value !== null && (
        <button type="button" class="button" aria-busy={isLoading.value} onClick={() => void loadMore()}>
          More
        </button>
      )}
    </>
  )
}

function OneCall({ call }: { readonly call: CallRow }) {
  return (
    <tr>
      <td>
        <a href={hrefOf(`/models/${call.model}`)}>
          <Words text={call.model} />
        </a>
      </td>
      <td>
        {call.status}
        {call.error !== null && (
          <span class="failed-text">
            {' '}
            <Words text={`${call.error.code}: ${call.error.message}`} />
          </span>
        )}
      </td>
      <td>
        <code>{call.request_id}</code>
      </td>
      <td>
        <Ago at={call.created_at} />
      </td>
      <td class="right">
        <Duration from={call.created_at} to={call.completed_at} />
      </td>
      <td class="right">
        <Money usd={call.cost_usd} />
      </td>
    </tr>
  )
}

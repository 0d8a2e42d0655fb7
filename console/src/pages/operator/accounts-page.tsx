/** Accounts, and one of them: what it uses, spent and holds, and its keys. */
import {
  type AccountDetail,
  type AccountRow,
  type AdminKey,
  createAccountKey,
  getAccount,
  listAccountKeys,
  listAccounts,
  revokeAccountKey,
} from '../../api/admin.ts'
import { changeAccount, getPauses, type Pause, pauseQueue, resumeQueueOf } from '../../api/admin-money.ts'
import { Icon } from '../../components/icon.tsx'
import { confirm, showSecretOnce } from '../../components/overlay/dialog.tsx'
import { EmptyState, Loaded, Skeleton } from '../../components/state.tsx'
import { LoadedTable, type PlainColumn } from '../../components/table/plain-table.tsx'
import { Ago, KeyValue, Money, Words } from '../../components/text.tsx'
import { hrefOf, query, setQuery } from '../../routes.ts'
import { tell } from '../../state/deeds.ts'
import { useResource } from '../../state/resource.ts'
import { formatCount } from '../../text/format.ts'
import { toMarkedText } from '../../text/marks.ts'
import { AccountCredit } from './account-credit.tsx'
import { NewAccount } from './new-account.tsx'
import { OperatorPage } from './operator-page.tsx'

const COLUMNS: readonly PlainColumn<AccountRow>[] = [
  {
    label: 'Account',
    cell: ({ id, name }) => (
      <a href={hrefOf(`/operator/accounts/${encodeURIComponent(id)}`)}>
        <Words text={name} />
      </a>
    ),
  },
  { label: 'Tier', cell: ({ tier }) => <Words text={tier} /> },
  {
    label: 'Status',
    cell: ({ status }) => status,
    className: ({ status }) => (status === 'suspended' ? 'failed-text' : ''),
  },
  { label: 'Made', cell: ({ created_at: at }) => <Ago at={at} /> },
]

export function AccountsPage() {
  const resource = useResource('operator accounts', listAccounts)
  const sought = (query.value.get('q') ?? '').toLowerCase()
  const isSought = ({ id, name }: AccountRow) => id.includes(sought) || name.toLowerCase().includes(sought)
  return (
    <OperatorPage here="accounts" title="Accounts">
      <div class="filter-bar">
        <input
          type="search"
          aria-label="Find an account"
          placeholder="id or name"
          value={query.value.get('q') ?? ''}
          onInput={(event) => setQuery({ q: event.currentTarget.value }, { replace: true })}
        />
        <button type="button" class="button small primary" onClick={() => setQuery({ new: '1' })}>
          <Icon name="plus" /> New account
        </button>
      </div>
      {query.value.get('new') !== null && <NewAccount onClose={() => setQuery({ new: null }, { replace: true })} />}
      <LoadedTable
        label="Accounts"
        columns={COLUMNS}
        resource={resource}
        rowsOf={({ accounts }) => accounts.filter(isSought)}
        keyOf={({ id }) => id}
        skeletonRows={6}
        empty={
          <EmptyState title={sought === '' ? 'No accounts yet' : `No account with “${toMarkedText(sought)}”`}>
            {sought === '' ? (
              <p class="dim">Whoever runs jobs here has an account, with a key or more, limits and credit.</p>
            ) : (
              <button type="button" class="button" onClick={() => setQuery({ q: null })}>
                Show all
              </button>
            )}
          </EmptyState>
        }
      />
    </OperatorPage>
  )
}

async function loadAccount(id: string, signal: AbortSignal) {
  const [account, { keys }, { pauses }] = await Promise.all([
    getAccount(id, signal),
    listAccountKeys(id, signal),
    getPauses(signal),
  ])
  const isOf = ({ scope, name }: Pause) => name === id && (scope === 'account' || scope === 'own')
  return { account, keys, pauses: pauses.filter(isOf) }
}

export function OneAccountPage({ id = '' }: Readonly<Record<string, string>>) {
  const resource = useResource(`operator account ${id}`, (signal) => loadAccount(id, signal))
  const change = (deed: () => Promise<unknown>) =>
    tell(async () => {
      await deed()
      resource.reload()
    })
  async function revoke(key: AdminKey): Promise<void> {
    const isMeant = await confirm({
      title: `Revoke “${key.name}”?`,
      text: 'Programs and pages that use it are refused within a second. This cannot be taken back.',
      deed: 'Revoke',
      isDangerous: true,
    })
    if (isMeant) await change(() => revokeAccountKey(key.id))
  }
  async function setStatus({ name }: AccountRow, status: AccountRow['status']): Promise<void> {
    const isMeant =
      status === 'active' ||
      (await confirm({
        title: `Suspend ${toMarkedText(name)}?`,
        text: 'Its keys are refused within a second. What waits stays, what runs goes on to its end.',
        deed: 'Suspend',
        isDangerous: true,
      }))
    if (isMeant) await change(() => changeAccount(id, { status }))
  }
  async function setPause({ name }: AccountRow, isToPause: boolean): Promise<void> {
    const isMeant =
      !isToPause ||
      (await confirm({
        title: `Pause the queue of ${toMarkedText(name)}?`,
        text: 'None of its jobs begins until it is resumed; what runs goes on, and new jobs wait. It is told why.',
        deed: 'Pause',
        isDangerous: true,
      }))
    const key = { scope: 'account', name: id } as const
    if (isMeant) await change(() => (isToPause ? pauseQueue(key, '') : resumeQueueOf(key)))
  }
  return (
    <section class="page">
      <a class="dim back" href={hrefOf('/operator/accounts')}>
        ← Accounts
      </a>
      {resource.data.value === null && <h1 class="unseen">Account</h1>}
      <Loaded resource={resource} skeleton={<Skeleton rows={6} />}>
        {({ account, keys, pauses }) => (
          <>
            <h1>
              <Words text={account.name} />
            </h1>
            <div class="details">
              <AccountFacts
                account={account}
                pauses={pauses}
                onStatus={(status) => void setStatus(account, status)}
                onPause={(isToPause) => void setPause(account, isToPause)}
              />
              <AccountKeys
                keys={keys}
                onNew={() =>
                  void change(async () => {
                    showSecretOnce('key', (await createAccountKey(id, 'made in the console')).text)
                  })
                }
                onRevoke={(key) => void revoke(key)}
              />
              <AccountCredit account={account} onChange={resource.reload} />
            </div>
          </>
        )}
      </Loaded>
    </section>
  )
}

interface AccountKeysProps {
  readonly keys: readonly AdminKey[]
  readonly onNew: () => void
  readonly onRevoke: (key: AdminKey) => void
}

function AccountKeys({ keys, onNew, onRevoke }: AccountKeysProps) {
  return (
    <section class="card" aria-labelledby="one-keys">
      <div class="section-head">
        <h2 id="one-keys">Keys</h2>
        <button type="button" class="button small" onClick={onNew}>
          New key
        </button>
      </div>
      {keys.length === 0 && <p class="dim">none</p>}
      <ul class="plain-list">
        {keys.map((key) => (
          <OneKey key={key.id} row={key} onRevoke={() => onRevoke(key)} />
        ))}
      </ul>
    </section>
  )
}

interface AccountFactsProps {
  readonly account: AccountDetail
  /** Its own, and the operator's. */
  readonly pauses: readonly Pause[]
  readonly onStatus: (status: AccountRow['status']) => void
  readonly onPause: (isToPause: boolean) => void
}

function AccountFacts({ account, pauses, onStatus, onPause }: AccountFactsProps) {
  const { id, tier, status, use, balance, usage } = account
  return (
    <section class="card" aria-labelledby="one-account">
      <div class="section-head">
        <h2 id="one-account">Account</h2>
        <button type="button" class="button small" onClick={() => onPause(pauses.length === 0)}>
          {pauses.length === 0 ? 'Pause its queue…' : 'Resume its queue'}
        </button>
        {status === 'active' ? (
          <button type="button" class="button small danger" onClick={() => onStatus('suspended')}>
            Suspend…
          </button>
        ) : (
          <button type="button" class="button small primary" onClick={() => onStatus('active')}>
            Activate
          </button>
        )}
      </div>
      <KeyValue
        pairs={[
          ['Id', <code key="id">{id}</code>],
          ['Tier', tier],
          ['Status', status],
          ['Queue', pauses.length === 0 ? null : <Words key="paused" text={pauses.map(describePause).join(', ')} />],
          ['Running', String(use.running)],
          [
            'Waiting',
            use.queued === 0 ? (
              '0'
            ) : (
              <a key="waiting" href={hrefOf(`/operator/jobs?status=queued&account=${encodeURIComponent(id)}`)}>
                {formatCount(use.queued)}, and why
              </a>
            ),
          ],
          ['Streams', String(use.streams)],
          ['Credit', balance === null ? 'not metered' : <Money key="m" usd={balance.available_usd} />],
          ['Held', balance === null ? null : <Money key="h" usd={balance.held_usd} />],
          ['Spent', <Money key="s" usd={usage.charged_usd} />],
        ]}
      />
    </section>
  )
}

function describePause({ scope, reason }: Pause): string {
  const who = scope === 'own' ? 'paused by itself' : 'paused by an operator'
  return reason === null ? who : `${who} (${reason})`
}

function OneKey({ row, onRevoke }: { readonly row: AdminKey; readonly onRevoke: () => void }) {
  const { id, name, scopes, revoked_at: revokedAt } = row
  return (
    <li class={revokedAt === null ? '' : 'revoked'}>
      <span class="asset-name">
        <Words text={name === '' ? id : name} />
        <span class="dim">
          {scopes === null ? 'everything' : scopes.join(', ')}
          {revokedAt !== null && ' · revoked'}
        </span>
      </span>
      {revokedAt === null && (
        <button type="button" class="button small danger" onClick={onRevoke}>
          Revoke
        </button>
      )}
    </li>
  )
}

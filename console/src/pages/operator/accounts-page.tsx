/** Accounts, and one of them: what it uses, spent and holds, and its keys. */
import {
  type AccountRow,
  type AdminKey,
  createAccountKey,
  getAccount,
  listAccountKeys,
  listAccounts,
  revokeAccountKey,
} from '../../api/admin.ts'
import { ApiError } from '../../api/client.ts'
import { confirm, showSecretOnce } from '../../components/overlay/dialog.tsx'
import { EmptyState, Loaded, Skeleton } from '../../components/state.tsx'
import { LoadedTable, type PlainColumn } from '../../components/table/plain-table.tsx'
import { Ago, KeyValue, Money, showToast, Words } from '../../components/text.tsx'
import { hrefOf } from '../../routes.ts'
import { useResource } from '../../state/resource.ts'
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
  return (
    <OperatorPage here="accounts" title="Accounts">
      <LoadedTable
        label="Accounts"
        columns={COLUMNS}
        resource={resource}
        rowsOf={({ accounts }) => accounts}
        keyOf={({ id }) => id}
        skeletonRows={6}
        empty={
          <EmptyState title="No accounts yet">
            <p class="dim">
              <code>atelier accounts create</code> makes one.
            </p>
          </EmptyState>
        }
      />
    </OperatorPage>
  )
}

export function OneAccountPage({ id = '' }: Readonly<Record<string, string>>) {
  const resource = useResource(`operator account ${id}`, async (signal) => {
    const [account, { keys }] = await Promise.all([getAccount(id, signal), listAccountKeys(id, signal)])
    return { account, keys }
  })
  async function tell(deed: () => Promise<unknown>): Promise<void> {
    try {
      await deed()
      resource.reload()
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      showToast(error.message)
    }
  }
  async function revoke(key: AdminKey): Promise<void> {
    const isMeant = await confirm({
      title: `Revoke “${key.name}”?`,
      text: 'Programs and pages that use it are refused within a second. This cannot be taken back.',
      deed: 'Revoke',
      isDangerous: true,
    })
    if (isMeant) await tell(() => revokeAccountKey(key.id))
  }
  return (
    <section class="page">
      <a class="dim back" href={hrefOf('/operator/accounts')}>
        ← Accounts
      </a>
      {resource.data.value === null && <h1 class="unseen">Account</h1>}
      <Loaded resource={resource} skeleton={<Skeleton rows={6} />}>
        {({ account, keys }) => (
          <>
            <h1>
              <Words text={account.name} />
            </h1>
            <div class="details">
              <section class="card" aria-labelledby="one-account">
                <h2 id="one-account">Account</h2>
                <KeyValue
                  pairs={[
                    ['Id', <code key="id">{account.id}</code>],
                    ['Tier', account.tier],
                    ['Status', account.status],
                    ['Running', String(account.use.running)],
                    ['Waiting', String(account.use.queued)],
                    ['Streams', String(account.use.streams)],
                    [
                      'Credit',
                      account.balance === null ? 'not metered' : <Money key="m" usd={account.balance.available_usd} />,
                    ],
                    ['Held', account.balance === null ? null : <Money key="h" usd={account.balance.held_usd} />],
                    ['Spent', <Money key="s" usd={account.usage.charged_usd} />],
                  ]}
                />
              </section>
              <section class="card" aria-labelledby="one-keys">
                <div class="section-head">
                  <h2 id="one-keys">Keys</h2>
                  <button
                    type="button"
                    class="button small"
                    onClick={() =>
                      void tell(async () => {
                        showSecretOnce('key', (await createAccountKey(id, 'made in the console')).text)
                      })
                    }
                  >
                    New key
                  </button>
                </div>
                {keys.length === 0 && <p class="dim">none</p>}
                <ul class="plain-list">
                  {keys.map((key) => (
                    <li key={key.id} class={key.revoked_at === null ? '' : 'revoked'}>
                      <span class="asset-name">
                        <Words text={key.name === '' ? key.id : key.name} />
                        <span class="dim">
                          {key.scopes === null ? 'everything' : key.scopes.join(', ')}
                          {key.revoked_at !== null && ' · revoked'}
                        </span>
                      </span>
                      {key.revoked_at === null && (
                        <button type="button" class="button small danger" onClick={() => void revoke(key)}>
                          Revoke
                        </button>
                      )}
                    </li>
                  ))}
                </ul>
              </section>
            </div>
          </>
        )}
      </Loaded>
    </section>
  )
}

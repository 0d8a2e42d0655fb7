/** Keys of the account: made, shown once, given a new secret, revoked. */
import { useSignal } from '@preact/signals'
import { createKey, type KeyRow, listKeys, revokeKey, rotateKey } from '../../api/account.ts'
import { ApiError } from '../../api/client.ts'
import { Icon } from '../../components/icon.tsx'
import { confirm, Dialog, RotateSecret, showSecretOnce } from '../../components/overlay/dialog.tsx'
import { EmptyState, ErrorBox, Loaded, Skeleton } from '../../components/state.tsx'
import { Ago, Moment, Words } from '../../components/text.tsx'
import { query, setQuery } from '../../routes.ts'
import { second } from '../../state/clock.ts'
import { tell } from '../../state/deeds.ts'
import { useResource } from '../../state/resource.ts'
import { toMarkedText } from '../../text/marks.ts'
import { AccountTabs } from './account-page.tsx'

/** What a program needs. */
const WORK = [
  ...(['jobs:read', 'jobs:write', 'assets:read', 'assets:write', 'models:read', 'models:run'] as const),
  ...(['endpoints:read', 'endpoints:write', 'endpoints:run'] as const),
] as const
const SCOPES = [
  ...WORK,
  ...(['builds:read', 'builds:write', 'deployments:read', 'deployments:write', 'keys:write'] as const),
] as const

export function KeysPage() {
  const resource = useResource('keys', listKeys)
  const isMaking = query.value.get('new') === '1'
  const rotating = useSignal<KeyRow | null>(null)
  async function revoke(key: KeyRow): Promise<void> {
    const isMeant = await confirm({
      title: `Revoke “${toMarkedText(keyName(key))}”?`,
      text: key.is_current
        ? 'You are signed in with this key: this page ends with it, within a second.'
        : 'Programs and pages that use it are refused within a second. This cannot be taken back.',
      deed: 'Revoke',
      isDangerous: true,
    })
    if (!isMeant) return
    await tell(async () => {
      await revokeKey(key.id)
      resource.reload()
    })
  }
  const openNew = () => setQuery({ new: '1' })
  return (
    <section class="page keys">
      <div class="page-head">
        <h1>Keys</h1>
        <button type="button" class="button primary" onClick={openNew}>
          <Icon name="plus" /> New key
        </button>
      </div>
      <AccountTabs here="keys" />
      <Loaded resource={resource} skeleton={<Skeleton rows={4} />}>
        {({ keys }) =>
          keys.length === 0 ? (
            <NoKeys onNew={openNew} />
          ) : (
            <ul class="plain-list card-list">
              {keys.map((key) => (
                <OneKey
                  key={key.id}
                  row={key}
                  onRevoke={() => void revoke(key)}
                  onRotate={() => {
                    rotating.value = key
                  }}
                />
              ))}
            </ul>
          )
        }
      </Loaded>
      {isMaking && (
        <NewKey
          onClose={() => setQuery({ new: null }, { replace: true })}
          onMade={(secret) => {
            setQuery({ new: null }, { replace: true })
            showSecretOnce('key', secret)
            resource.reload()
          }}
        />
      )}
      {rotating.value !== null && (
        <RotateSecret
          name={keyName(rotating.value)}
          about="The key keeps its name, scopes and history."
          rotate={rotateKey.bind(null, rotating.value.id)}
          onClose={() => {
            rotating.value = null
          }}
          onRotated={(secret, about) => {
            rotating.value = null
            showSecretOnce('key', secret, about)
            resource.reload()
          }}
        />
      )}
    </section>
  )
}

function NoKeys({ onNew }: { readonly onNew: () => void }) {
  return (
    <EmptyState title="No keys yet">
      <p class="dim">A key lets a program, or another browser, act for this account.</p>
      <button type="button" class="button primary" onClick={onNew}>
        Make the first one
      </button>
    </EmptyState>
  )
}

/** One that was made without a name is called by its id. */
function keyName({ name, id }: KeyRow): string {
  return name === '' ? id : name
}

interface OneKeyProps {
  readonly row: KeyRow
  readonly onRevoke: () => void
  readonly onRotate: () => void
}

function OneKey({ row, onRevoke, onRotate }: OneKeyProps) {
  return (
    <li class={row.revoked_at === null ? '' : 'revoked'}>
      <span class="asset-name">
        <Words text={keyName(row)} /> {row.is_current && <span class="chip quiet">this session</span>}
        {row.revoked_at !== null && <span class="chip quiet">revoked</span>}
        <span class="dim">
          {row.scopes === null ? 'everything' : row.scopes.join(', ')}
          {row.endpoints !== null && ` of ${row.endpoints.join(', ')}`} · made <Ago at={row.created_at} />
          {row.last_used_at !== null && (
            <>
              {' · used '}
              <Ago at={row.last_used_at} />
            </>
          )}
          {row.expires_at !== null && (
            <>
              {' · until '}
              <Moment at={row.expires_at} />
            </>
          )}
          {row.previous_until !== null && Date.parse(row.previous_until) > second.value && (
            <>
              {' · its former secret counts until '}
              <Moment at={row.previous_until} />
            </>
          )}
        </span>
      </span>
      {row.revoked_at === null && (
        <>
          <button
            type="button"
            class="button small"
            aria-label={`Rotate… ${toMarkedText(keyName(row))}`}
            onClick={onRotate}
          >
            Rotate…
          </button>
          <button type="button" class="button small danger" onClick={onRevoke}>
            Revoke
          </button>
        </>
      )}
    </li>
  )
}

function NewKey({ onClose, onMade }: { readonly onClose: () => void; readonly onMade: (secret: string) => void }) {
  const name = useSignal('')
  const scopes = useSignal<ReadonlySet<string>>(new Set(WORK))
  const endpoints = useSignal('')
  const error = useSignal<ApiError | null>(null)
  async function make(event: Event): Promise<void> {
    event.preventDefault()
    const chosen = scopes.value.size === SCOPES.length ? null : [...scopes.value]
    const named = endpoints.value.split(/[\s,]+/).filter((each) => each !== '')
    try {
      // Such a key can have no other scopes than those that the service gives it.
      const made =
        named.length === 0 ? createKey(name.value.trim(), chosen, null) : createKey(name.value.trim(), null, named)
      onMade((await made).secret)
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown
      error.value = thrown
    }
  }
  return (
    <Dialog title="New key" onClose={onClose}>
      <form class="stack" onSubmit={(event) => void make(event)}>
        <label for="key-name">What it is for</label>
        <input
          id="key-name"
          type="text"
          required
          maxLength={200}
          value={name.value}
          onInput={(event) => {
            name.value = event.currentTarget.value
          }}
        />
        <label for="key-endpoints">Only these endpoints</label>
        <input
          id="key-endpoints"
          type="text"
          placeholder="all, or names such as poster, thumb@production"
          value={endpoints.value}
          onInput={(event) => {
            endpoints.value = event.currentTarget.value
          }}
        />
        <fieldset class="choice" disabled={endpoints.value.trim() !== ''}>
          <legend>May</legend>
          {SCOPES.map((scope) => (
            <label key={scope}>
              <input
                type="checkbox"
                checked={scopes.value.has(scope)}
                onChange={(event) => {
                  const next = new Set(scopes.value)
                  if (event.currentTarget.checked) next.add(scope)
                  else next.delete(scope)
                  scopes.value = next
                }}
              />
              {scope}
            </label>
          ))}
        </fieldset>
        {error.value !== null && <ErrorBox error={error.value} />}
        <div class="dialog-deeds">
          <button type="submit" class="button primary" disabled={scopes.value.size === 0}>
            Make the key
          </button>
        </div>
      </form>
    </Dialog>
  )
}

/** Keys of the account: made, shown once, revoked. */
import { useSignal } from '@preact/signals'
import { createKey, type KeyRow, listKeys, revokeKey } from '../../api/account.ts'
import { ApiError } from '../../api/client.ts'
import { EmptyState } from '../../components/empty-state.tsx'
import { ErrorBox } from '../../components/error-box.tsx'
import { Ago, Moment } from '../../components/figures.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { confirm } from '../../components/overlay/confirm.tsx'
import { Dialog } from '../../components/overlay/dialog.tsx'
import { KeyOnce } from '../../components/overlay/key-once.tsx'
import { showToast } from '../../components/overlay/toast.tsx'
import { Skeleton } from '../../components/skeleton.tsx'
import { Words } from '../../components/words.tsx'
import { useResource } from '../../state/resource.ts'
import { toMarkedText } from '../../text/marks.ts'
import { AccountTabs } from './account-tabs.tsx'

/** What a program needs. */
const WORK = ['jobs:read', 'jobs:write', 'assets:read', 'assets:write', 'models:read', 'models:run'] as const
const SCOPES = [...WORK, 'keys:write'] as const

export function KeysPage() {
  const resource = useResource('keys', listKeys)
  const isMaking = useSignal(false)
  const secret = useSignal<string | null>(null)
  async function revoke(key: KeyRow): Promise<void> {
    const isMeant = await confirm({
      title: `Revoke “${toMarkedText(key.name)}”?`,
      text: key.is_current
        ? 'You are signed in with this key: this page ends with it, within a second.'
        : 'Programs and pages that use it are refused within a second. This cannot be taken back.',
      deed: 'Revoke',
      isDangerous: true,
    })
    if (!isMeant) return
    try {
      await revokeKey(key.id)
      resource.reload()
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      showToast(error.message)
    }
  }
  return (
    <section class="page keys">
      <h1>Keys</h1>
      <AccountTabs here="keys" />
      <button
        type="button"
        class="button primary"
        onClick={() => {
          isMaking.value = true
        }}
      >
        New key
      </button>
      <Loaded resource={resource} skeleton={<Skeleton rows={4} />}>
        {({ keys }) =>
          keys.length === 0 ? (
            <EmptyState title="No keys yet">
              <p class="dim">A key lets a program, or another browser, act for this account.</p>
            </EmptyState>
          ) : (
            <ul class="plain-list key-list">
              {keys.map((key) => (
                <li key={key.id} class={key.revoked_at === null ? '' : 'revoked'}>
                  <span class="asset-name">
                    <Words text={key.name} /> {key.is_current && <span class="chip quiet">this session</span>}
                    <span class="dim">
                      {key.scopes === null ? 'everything' : key.scopes.join(', ')} · made <Ago at={key.created_at} />
                      {key.last_used_at !== null && (
                        <>
                          {' · used '}
                          <Ago at={key.last_used_at} />
                        </>
                      )}
                      {key.expires_at !== null && (
                        <>
                          {' · until '}
                          <Moment at={key.expires_at} />
                        </>
                      )}
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
          )
        }
      </Loaded>
      {isMaking.value && (
        <NewKey
          onClose={() => {
            isMaking.value = false
          }}
          onMade={(text) => {
            isMaking.value = false
            secret.value = text
            resource.reload()
          }}
        />
      )}
      {secret.value !== null && (
        <KeyOnce
          secret={secret.value}
          onClose={() => {
            secret.value = null
          }}
        />
      )}
    </section>
  )
}

function NewKey({ onClose, onMade }: { readonly onClose: () => void; readonly onMade: (secret: string) => void }) {
  const name = useSignal('')
  const scopes = useSignal<ReadonlySet<string>>(new Set(WORK))
  const error = useSignal<ApiError | null>(null)
  async function make(event: Event): Promise<void> {
    event.preventDefault()
    const chosen = scopes.value.size === SCOPES.length ? null : [...scopes.value]
    try {
      onMade((await createKey(name.value.trim(), chosen)).secret)
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
        <fieldset class="choice">
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

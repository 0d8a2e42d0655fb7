/** Own keys of the account at the providers of models: saved, tried out, replaced, removed. None is ever shown again. */
import { useSignal } from '@preact/signals'
import { ApiError } from '../../api/client.ts'
import {
  deleteProviderKey,
  listProviderKeys,
  type ProviderKey,
  putProviderKey,
  testProviderKey,
} from '../../api/money.ts'
import { Icon } from '../../components/icon.tsx'
import { confirm, Dialog } from '../../components/overlay/dialog.tsx'
import { EmptyState, ErrorBox, Loaded, Skeleton } from '../../components/state.tsx'
import { Ago, showToast, Words } from '../../components/text.tsx'
import { query, setQuery } from '../../routes.ts'
import { tell } from '../../state/deeds.ts'
import { useResource } from '../../state/resource.ts'
import { AccountTabs } from './account-page.tsx'

export function ProviderKeysPage() {
  const resource = useResource('provider keys', listProviderKeys)
  const isMaking = query.value.get('new') === '1'
  const openNew = () => setQuery({ new: '1' })
  const closeNew = () => setQuery({ new: null }, { replace: true })
  async function remove({ provider }: ProviderKey): Promise<void> {
    const isMeant = await confirm({
      title: `Remove the ${provider} key?`,
      text: 'The next call goes with the key of the service, if it has one, and costs credits again.',
      deed: 'Remove',
      isDangerous: true,
    })
    if (!isMeant) return
    await tell(async () => {
      await deleteProviderKey(provider)
      resource.reload()
    })
  }
  return (
    <section class="page provider-keys">
      <div class="page-head">
        <h1>Own provider keys</h1>
        <button type="button" class="button primary" onClick={openNew}>
          <Icon name="plus" /> Save a key
        </button>
      </div>
      <AccountTabs here="providers" />
      <Loaded resource={resource} skeleton={<Skeleton rows={3} />}>
        {({ provider_keys: keys }) =>
          keys.length === 0 ? (
            <EmptyState title="No own keys">
              <p class="dim">
                With a key of yours, calls of that provider's models go on your bill there, and cost no credits here.
              </p>
              <button type="button" class="button primary" onClick={openNew}>
                Save the first one
              </button>
            </EmptyState>
          ) : (
            <ul class="plain-list card-list">
              {keys.map((key) => (
                <OneKey key={key.provider} row={key} onRemove={() => void remove(key)} />
              ))}
            </ul>
          )
        }
      </Loaded>
      {isMaking && (
        <SaveKey
          onClose={closeNew}
          onSaved={() => {
            closeNew()
            resource.reload()
          }}
        />
      )}
    </section>
  )
}

function OneKey({ row, onRemove }: { readonly row: ProviderKey; readonly onRemove: () => void }) {
  const { provider, last_four: lastFour, status, updated_at: savedAt } = row
  const tryOut = () =>
    tell(async () => {
      showToast((await testProviderKey(provider)).detail)
    })
  return (
    <li>
      <span class="asset-name">
        <Words text={provider} />{' '}
        {status === 'unreadable' && <span class="chip quiet">cannot be read: save it again</span>}
        <span class="dim">
          ends with <code>{lastFour}</code> · saved <Ago at={savedAt} />
        </span>
      </span>
      <button type="button" class="button small" aria-label={`Test the ${provider} key`} onClick={() => void tryOut()}>
        Test
      </button>
      <button type="button" class="button small danger" aria-label={`Remove the ${provider} key`} onClick={onRemove}>
        Remove
      </button>
    </li>
  )
}

function SaveKey({ onClose, onSaved }: { readonly onClose: () => void; readonly onSaved: () => void }) {
  const provider = useSignal('')
  const key = useSignal('')
  const error = useSignal<ApiError | null>(null)
  async function save(event: Event): Promise<void> {
    event.preventDefault()
    try {
      await putProviderKey(provider.value.trim(), key.value.trim())
      onSaved()
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown
      error.value = thrown
    }
  }
  return (
    <Dialog title="Own provider key" onClose={onClose}>
      <form class="stack" onSubmit={(event) => void save(event)}>
        <label for="provider-name">Provider</label>
        <input
          id="provider-name"
          type="text"
          required
          placeholder="as models begin: openai, bfl, kling"
          value={provider.value}
          onInput={(event) => {
            provider.value = event.currentTarget.value
          }}
        />
        <label for="provider-key">Its key; the one before is replaced</label>
        <input
          id="provider-key"
          type="password"
          required
          autocomplete="off"
          placeholder="or id:secret"
          value={key.value}
          onInput={(event) => {
            key.value = event.currentTarget.value
          }}
        />
        {error.value !== null && <ErrorBox error={error.value} />}
        <div class="dialog-deeds">
          <button type="submit" class="button primary">
            Save the key
          </button>
        </div>
      </form>
    </Dialog>
  )
}

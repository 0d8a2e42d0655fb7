/** A customer in one go: the account, its credit, and a key that is shown once. */
import { type Signal, useSignal } from '@preact/signals'
import { createAccountKey } from '../../api/admin.ts'
import { createAccount, grantCredit, listTiers } from '../../api/admin-money.ts'
import { ApiError } from '../../api/client.ts'
import { Dialog, showSecretOnce } from '../../components/overlay/dialog.tsx'
import { ErrorBox } from '../../components/state.tsx'
import { navigate } from '../../routes.ts'
import { useResource } from '../../state/resource.ts'
import { toMarkedText } from '../../text/marks.ts'

export function NewAccount({ onClose }: { readonly onClose: () => void }) {
  const [id, tier, usd] = [useSignal(''), useSignal(''), useSignal('')]
  const error = useSignal<ApiError | null>(null)
  const isBusy = useSignal(false)
  /** What was made before a refusal is not made again. */
  const made = useSignal<{ readonly id: string; readonly grant: string } | null>(null)

  async function make(event: Event): Promise<void> {
    event.preventDefault()
    if (isBusy.value) return
    isBusy.value = true
    error.value = null
    const name = id.value.trim()
    try {
      if (made.value?.id !== name) {
        await createAccount({ id: name, ...(tier.value !== '' && { tier: tier.value }) })
        made.value = { id: name, grant: crypto.randomUUID() }
      }
      if (usd.value.trim() !== '') await grantCredit(name, usd.value.trim(), 'when it was made', made.value.grant)
      const key = await createAccountKey(name, 'made with the account')
      navigate(`/operator/accounts/${encodeURIComponent(name)}`)
      showSecretOnce('key', key.text)
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown
      error.value = thrown
      isBusy.value = false
    }
  }

  return (
    <Dialog title="New account" onClose={onClose}>
      <form class="stack" onSubmit={(event) => void make(event)}>
        <Fields id={id} tier={tier} usd={usd} />
        {error.value !== null && <ErrorBox error={error.value} />}
        {error.value !== null && made.value !== null && (
          <p class="dim">The account is there; only the rest is tried again.</p>
        )}
        <div class="dialog-deeds">
          <button type="submit" class="button primary" disabled={isBusy.value}>
            Make it, with a key
          </button>
        </div>
      </form>
    </Dialog>
  )
}

interface FieldsProps {
  readonly id: Signal<string>
  readonly tier: Signal<string>
  readonly usd: Signal<string>
}

function Fields({ id, tier, usd }: FieldsProps) {
  const tiers = useResource('tiers', listTiers).data.value?.tiers ?? []
  return (
    <>
      <label for="account-id">Id</label>
      <input
        id="account-id"
        type="text"
        required
        maxLength={63}
        spellcheck={false}
        pattern="[a-z0-9]([a-z0-9\-]*[a-z0-9])?"
        title="small letters, digits and dashes"
        value={id.value}
        onInput={(event) => {
          id.value = event.currentTarget.value
        }}
      />
      <label for="account-tier">Tier</label>
      <select
        id="account-tier"
        value={tier.value}
        onChange={(event) => {
          tier.value = event.currentTarget.value
        }}
      >
        <option value="">as set for new accounts</option>
        {tiers.map(({ name }) => (
          <option key={name} value={name}>
            {toMarkedText(name)}
          </option>
        ))}
      </select>
      <label for="account-usd">Credit in USD</label>
      <input
        id="account-usd"
        type="text"
        inputMode="decimal"
        placeholder="none"
        value={usd.value}
        onInput={(event) => {
          usd.value = event.currentTarget.value
        }}
      />
    </>
  )
}

import { hrefOf } from '../../routes.ts'
import { session } from '../../state/session.ts'

export function TopLine() {
  const { account, needs_credential: needsCredential, operator } = session.value ?? {}
  return (
    <header class="top-line">
      <div class="top-line-space" />
      {account != null && (
        <a class="account-line" href={hrefOf('/account')}>
          {account.name}
          {account.credit !== null && <span class="money"> ${account.credit.available_usd}</span>}
        </a>
      )}
      {account == null && operator === true && <span class="account-line">operator</span>}
      {needsCredential === true && (
        <a class="account-line" href={hrefOf('/settings')}>
          Sign out…
        </a>
      )}
    </header>
  )
}

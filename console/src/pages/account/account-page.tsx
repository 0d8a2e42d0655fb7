/** The account: its limits and how much of them is in use, its credit, and the ways on. */
import { PageTabs } from '../../components/tabs/tabs.tsx'
import { KeyValue, Money, Words } from '../../components/text.tsx'
import { hrefOf } from '../../routes.ts'
import { session } from '../../state/session.ts'

export function AccountPage() {
  const account = session.value?.account ?? null
  if (account === null) return null
  const { running, max_running: maxRunning, queued, max_queued: maxQueued, credit } = account
  return (
    <section class="page account">
      <h1>
        <Words text={account.name} />
      </h1>
      <AccountTabs here="account" />
      <div class="details">
        <section class="card" aria-labelledby="account-use">
          <h2 id="account-use">In use</h2>
          <Meter label="Running" value={running} most={maxRunning} />
          <Meter label="Waiting" value={queued} most={maxQueued} />
        </section>
        <section class="card" aria-labelledby="account-credit">
          <h2 id="account-credit">Credit</h2>
          {credit === null ? (
            <p class="dim">This account is not metered.</p>
          ) : (
            <>
              <p class="big-figure">
                <Money usd={credit.available_usd} />
              </p>
              <p class="dim">
                <Money usd={credit.held_usd} /> held for what runs
              </p>
              <a href={hrefOf('/account/usage')}>What it was spent on →</a>
            </>
          )}
        </section>
        <section class="card" aria-labelledby="account-about">
          <h2 id="account-about">About</h2>
          <KeyValue
            pairs={[
              ['Id', <code key="id">{account.id}</code>],
              ['Tier', account.tier],
              ['May', session.value?.scopes?.join(', ') ?? 'everything'],
            ]}
          />
        </section>
      </div>
    </section>
  )
}

function Meter({
  label,
  value,
  most,
}: {
  readonly label: string
  readonly value: number
  readonly most: number | null
}) {
  return (
    <div class="meter">
      <span>{label}</span>
      <span class="number">
        {value}
        {most !== null && ` of ${most}`}
      </span>
      {most !== null && (
        <meter min={0} max={Math.max(1, most)} value={value} aria-label={`${label}: ${value} of ${most}`} />
      )}
    </div>
  )
}

const PLACES = {
  account: ['/account', 'Account'],
  usage: ['/account/usage', 'Usage'],
  statement: ['/account/statement', 'Statement'],
  budgets: ['/account/budgets', 'Budgets'],
  keys: ['/account/keys', 'Keys'],
  providers: ['/account/provider-keys', 'Own provider keys'],
} as const

export function AccountTabs({ here }: { readonly here: keyof typeof PLACES }) {
  return <PageTabs label="Account" places={Object.values(PLACES)} here={PLACES[here][0]} />
}

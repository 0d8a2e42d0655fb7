/** The money of one account: what it has, its latest entries, and a way to give credit and to give back what was charged. */
import { useSignal } from '@preact/signals'
import type { AccountDetail, LedgerLine } from '../../api/admin.ts'
import { grantCredit, refund } from '../../api/admin-money.ts'
import { ApiError } from '../../api/client.ts'
import { confirm, Dialog } from '../../components/overlay/dialog.tsx'
import { ErrorBox } from '../../components/state.tsx'
import { type PlainColumn, PlainTable } from '../../components/table/plain-table.tsx'
import { Moment, Money, showToast, Words } from '../../components/text.tsx'
import { hrefOf } from '../../routes.ts'
import { serverNow } from '../../state/clock.ts'
import { tell } from '../../state/deeds.ts'
import { formatUsd } from '../../text/format.ts'
import { toMarkedText } from '../../text/marks.ts'
import { monthBy, monthOf } from '../account/usage-range.ts'

interface AccountCreditProps {
  readonly account: AccountDetail
  readonly onChange: () => void
}

const WORDS: Readonly<Record<LedgerLine['kind'], string>> = {
  ...{ grant: 'Given', revoke: 'Taken back', hold: 'Held', settle: 'Charged', release: 'Set free', refund: 'Refunded' },
}

const chargedOf = ({ charged_micros: micros }: LedgerLine) => (micros / 1_000_000).toFixed(6)

const COLUMNS: readonly PlainColumn<LedgerLine>[] = [
  { label: 'When', cell: ({ at }) => <Moment at={at} /> },
  { label: 'What', cell: ({ kind }) => WORDS[kind] },
  {
    label: 'For',
    cell: ({ reference }) =>
      reference.startsWith('job:') ? (
        <a href={hrefOf(`/operator/jobs/${reference.slice(4)}`)}>
          <Words text={reference} />
        </a>
      ) : (
        <Words text={reference} />
      ),
  },
  { label: 'Note', cell: ({ memo }) => <Words text={memo} /> },
]

/** Whether something of it can be given back: not what was already. */
function isRefundable(line: LedgerLine, lines: readonly LedgerLine[]): boolean {
  const wasRefunded = lines.some(({ kind, reference }) => kind === 'refund' && reference === line.reference)
  return line.kind === 'settle' && line.charged_micros > 0 && !wasRefunded
}

/** Asked first; whether it was done. */
export async function giveBack({ holdId, usd }: { readonly holdId: string; readonly usd: string }): Promise<boolean> {
  const isMeant = await confirm({
    title: `Refund ${formatUsd(usd)}?`,
    text: `All that was charged for ${toMarkedText(holdId)} is credit of the account again. This cannot be taken back.`,
    deed: 'Refund',
    isDangerous: true,
  })
  const done = isMeant ? await tell(() => refund(holdId, 'by the operator, in the console')) : null
  if (done !== null) showToast(done.outcome === 'repeated' ? 'It had been refunded before.' : 'Refunded.')
  return done !== null
}

export function AccountCredit({ account, onChange }: AccountCreditProps) {
  const isGiving = useSignal(false)
  const { id, entries, balance } = account
  const path = `/operator/accounts/${encodeURIComponent(id)}`
  const columns: readonly PlainColumn<LedgerLine>[] = [
    ...COLUMNS,
    {
      label: 'Charged',
      isNumber: true,
      cell: (line) => line.charged_micros !== 0 && <Money usd={chargedOf(line)} />,
    },
    {
      label: 'Refund',
      cell: (line) =>
        isRefundable(line, entries) && (
          <button
            type="button"
            class="button small"
            onClick={() =>
              void giveBack({ holdId: line.reference, usd: chargedOf(line) }).then((isDone) => isDone && onChange())
            }
          >
            Refund…
          </button>
        ),
    },
  ]
  const lastMonth = monthBy(monthOf(serverNow(), 'UTC'), -1)
  return (
    <section class="card" aria-labelledby="one-credit">
      <div class="section-head">
        <h2 id="one-credit">Credit</h2>
        <a class="button small" href={hrefOf(`${path}/statement?month=${lastMonth}`)}>
          Statement of {lastMonth}
        </a>
        <a class="button small" href={hrefOf(`/operator/usage?time=30d&by=model&account=${encodeURIComponent(id)}`)}>
          Usage
        </a>
        {balance !== null && (
          <button
            type="button"
            class="button small"
            onClick={() => {
              isGiving.value = true
            }}
          >
            Give credit…
          </button>
        )}
      </div>
      {entries.length === 0 ? (
        <p class="dim">Nothing was given or charged yet.</p>
      ) : (
        <PlainTable label="Latest entries" columns={columns} rows={entries} keyOf={({ seq }) => seq} />
      )}
      {isGiving.value && (
        <GiveCredit
          id={id}
          onClose={() => {
            isGiving.value = false
          }}
          onGiven={onChange}
        />
      )}
    </section>
  )
}

interface GiveCreditProps {
  readonly id: string
  readonly onClose: () => void
  readonly onGiven: () => void
}

function GiveCredit({ id, onClose, onGiven }: GiveCreditProps) {
  const [usd, memo] = [useSignal(''), useSignal('')]
  const error = useSignal<ApiError | null>(null)
  // One dialog is one grant, however often it is sent.
  const grant = useSignal(crypto.randomUUID())
  async function give(event: Event): Promise<void> {
    event.preventDefault()
    try {
      await grantCredit(id, usd.value.trim(), memo.value.trim(), grant.value)
      onClose()
      onGiven()
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown
      error.value = thrown
    }
  }
  return (
    <Dialog title="Give credit" onClose={onClose}>
      <form class="stack" onSubmit={(event) => void give(event)}>
        <label for="grant-usd">USD; below zero takes it back</label>
        <input
          id="grant-usd"
          type="text"
          inputMode="decimal"
          required
          value={usd.value}
          onInput={(event) => {
            usd.value = event.currentTarget.value
          }}
        />
        <label for="grant-memo">What it is for</label>
        <input
          id="grant-memo"
          type="text"
          maxLength={500}
          value={memo.value}
          onInput={(event) => {
            memo.value = event.currentTarget.value
          }}
        />
        {error.value !== null && <ErrorBox error={error.value} />}
        <div class="dialog-deeds">
          <button type="submit" class="button primary">
            Give it
          </button>
        </div>
      </form>
    </Dialog>
  )
}

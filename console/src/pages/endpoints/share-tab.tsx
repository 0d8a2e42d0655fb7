/** Links to the page of the endpoint: what each may use up, what was used, and the code that shows the page elsewhere. */
import { useSignal } from '@preact/signals'
import { ApiError } from '../../api/client.ts'
import {
  type CreatedShare,
  createShare,
  type Endpoint,
  listShares,
  revokeShare,
  type Share,
  type ShareWish,
} from '../../api/endpoints.ts'
import { confirm } from '../../components/overlay/dialog.tsx'
import { EmptyState, ErrorBox } from '../../components/state.tsx'
import { LoadedTable, type PlainColumn } from '../../components/table/plain-table.tsx'
import { CopyButton, Moment, Words } from '../../components/text.tsx'
import { FieldShell } from '../../form/field-control.tsx'
import { tell } from '../../state/deeds.ts'
import { useResource } from '../../state/resource.ts'
import { formatUsd } from '../../text/format.ts'
import { may, NotAllowed } from './endpoints-page.tsx'
import { TextField } from './publish/input-card.tsx'

export function ShareTab({ endpoint: { name } }: { readonly endpoint: Endpoint }) {
  const resource = useResource(`shares ${name}`, (signal) => listShares(name, signal))
  const made = useSignal<CreatedShare | null>(null)
  async function revoke(share: Share): Promise<void> {
    const isMeant = await confirm({
      title: 'Revoke this link?',
      text: 'The page does not open any more, at once and for everybody. Runs that it began go on.',
      deed: 'Revoke',
      isDangerous: true,
    })
    if (!isMeant) return
    await tell(() => revokeShare(name, share.id))
    if (made.value?.id === share.id) made.value = null
    resource.reload()
  }
  return (
    <>
      <p>
        Whoever has the link opens a page with the form of this endpoint, and runs it at the cost of this account,
        without one of his own.
      </p>
      {may('endpoints:write') ? (
        <NewShare
          name={name}
          onMade={(share) => {
            made.value = share
            resource.reload()
          }}
        />
      ) : (
        <NotAllowed scope="endpoints:write" />
      )}
      {made.value !== null && <Made share={made.value} />}
      <h2>Links</h2>
      <LoadedTable
        label="Links"
        columns={toColumns(may('endpoints:write') ? (share) => void revoke(share) : null)}
        resource={resource}
        rowsOf={(shares) => shares}
        keyOf={({ id }) => id}
        empty={
          <EmptyState title="No links yet">
            <p class="dim">Each link has bounds of its own, and can be revoked.</p>
          </EmptyState>
        }
      />
    </>
  )
}

function toColumns(onRevoke: ((share: Share) => void) | null): readonly PlainColumn<Share>[] {
  return [
    { label: 'Note', cell: ({ note, id }) => <Words text={note === '' ? id.slice(0, 8) : note} /> },
    { label: 'State', cell: ({ state }) => state },
    { label: 'Runs', cell: ({ used, runs }) => `${used.runs} of ${runs}`, isNumber: true },
    {
      label: 'Spent',
      cell: ({ used, spend_usd: most }) =>
        `${formatUsd(used.spent_usd)}${most === null ? '' : ` of ${formatUsd(most)}`}`,
      isNumber: true,
    },
    { label: 'Until', cell: ({ expires_at: at }) => <Moment at={at} /> },
    { label: 'Version', cell: ({ version }) => version ?? 'current' },
    { label: 'Shown on', cell: ({ referrers }) => <Words text={referrers.join(', ')} /> },
    {
      label: 'More',
      cell: (share) =>
        onRevoke !== null && share.state === 'active' ? (
          <button
            type="button"
            class="button small danger"
            aria-label={`Revoke the link ${share.note === '' ? share.id.slice(0, 8) : share.note}`}
            onClick={() => onRevoke(share)}
          >
            Revoke…
          </button>
        ) : null,
    },
  ]
}

/** The address is told once: what the service keeps of it cannot be turned back into it. */
function Made({ share: { url, embed } }: { readonly share: CreatedShare }) {
  return (
    <section class="card" aria-label="The new link" role="status">
      <h2>The new link</h2>
      <p class="long-address">
        <a href={url} target="_blank" rel="noreferrer">
          {url}
        </a>{' '}
        <CopyButton text={url} label="Copy the link" word="Copy" />
      </p>
      <p class="warning">Keep it now: it is not shown again. Whoever has it can use it.</p>
      {embed !== null && (
        <>
          <div class="section-head">
            <h3>Embed code</h3>
            <CopyButton text={embed} label="Copy the embed code" word="Copy" />
          </div>
          <pre class="code-sample" tabIndex={0}>
            {embed}
          </pre>
        </>
      )}
    </section>
  )
}

const DAYS = { 1: '1 day', 7: '7 days', 30: '30 days', 365: '1 year' } as const
const DAY_MS = 86_400_000
const BEGIN = {
  ...{ runs: '100', spend: '', days: '7', perDay: '', atATime: '2', referrers: '', note: '', version: '' },
} as const
type Texts = Readonly<Record<keyof typeof BEGIN, string>>

function NewShare({ name, onMade }: { readonly name: string; readonly onMade: (share: CreatedShare) => void }) {
  const texts = useSignal<Texts>(BEGIN)
  const error = useSignal<ApiError | null>(null)
  const isBusy = useSignal(false)
  const set = (field: keyof Texts) => (text: string) => {
    texts.value = { ...texts.value, [field]: text }
  }
  async function create(): Promise<void> {
    error.value = null
    isBusy.value = true
    try {
      onMade(await createShare(name, toWish(texts.value)))
      texts.value = BEGIN
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown
      error.value = thrown
    } finally {
      isBusy.value = false
    }
  }
  const field = error.value?.details?.['field']
  const problemAt = (at: string) => (field === at ? (error.value?.message ?? null) : null)
  const text = (at: keyof Texts, label: string, wire: string, about = '') => (
    <TextField label={label} about={about} text={texts.value[at]} problem={problemAt(wire)} onText={set(at)} />
  )
  return (
    <form
      class="publish-form"
      onSubmit={(event) => {
        event.preventDefault()
        void create()
      }}
    >
      <div class="card">
        {text('runs', 'Runs', 'runs', 'How many runs the link is good for')}
        {text('spend', 'Dollars', 'spend_usd', 'What all of them together may cost; needed where runs cost something')}
        <FieldShell id="share-days" kind="choice" name="Ends in" problem={problemAt('expires_at')} about={null}>
          {(about) => (
            <select
              id="share-days"
              aria-describedby={about}
              value={texts.value.days}
              onChange={(event) => set('days')(event.currentTarget.value)}
            >
              {Object.entries(DAYS).map(([days, words]) => (
                <option key={days} value={days}>
                  {words}
                </option>
              ))}
            </select>
          )}
        </FieldShell>
        <TextField
          label="Shown on"
          about="Hosts whose pages may show it in a frame, one in a line: example.com. None: it is opened by itself"
          isLong
          text={texts.value.referrers}
          problem={problemAt('referrers')}
          onText={set('referrers')}
        />
        {text('note', 'Note', 'note', 'For you: where you gave it')}
        <details>
          <summary>More bounds</summary>
          {text('perDay', 'Runs in a day', 'runs_per_day')}
          {text('atATime', 'Runs at a time', 'at_a_time')}
          {text('version', 'Version', 'version', 'A number or an alias; empty: whichever is current')}
        </details>
      </div>
      {error.value !== null && typeof field !== 'string' && <ErrorBox error={error.value} />}
      <div class="run-bar">
        <button type="submit" class="button primary" disabled={isBusy.value}>
          Make a link
        </button>
      </div>
    </form>
  )
}

/** What is no number is sent as none: the service says what is wrong with it. */
function toWish({ runs, spend, days, perDay, atATime, referrers, note, version }: Texts): ShareWish {
  const orNull = (text: string) => (text.trim() === '' ? null : text.trim())
  return {
    runs: Number(runs),
    runs_per_day: perDay.trim() === '' ? null : Number(perDay),
    spend_usd: orNull(spend.replace(/^\s*\$/, '')),
    at_a_time: Number(atATime),
    version: orNull(version),
    note,
    referrers: referrers
      .split(/[\s,]+/)
      .map((host) => host.trim().toLowerCase())
      .filter((host) => host !== ''),
    expires_at: new Date(Date.now() + Number(days) * DAY_MS).toISOString(),
  }
}

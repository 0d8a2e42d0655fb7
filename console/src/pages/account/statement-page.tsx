/** The statement of a month of UTC: from what there was to what is left, and what lies between. */
import { getStatement, getStatementCsv, type Statement } from '../../api/money.ts'
import { Icon } from '../../components/icon.tsx'
import { EmptyState, Loaded, Skeleton } from '../../components/state.tsx'
import { KeyValue, Money, saveText, Words } from '../../components/text.tsx'
import { hrefOf, query } from '../../routes.ts'
import { serverNow } from '../../state/clock.ts'
import { tell } from '../../state/deeds.ts'
import { useResource } from '../../state/resource.ts'
import { session } from '../../state/session.ts'
import { formatCount } from '../../text/format.ts'
import { AccountTabs } from './account-page.tsx'
import { monthBy, monthOf, toMonth } from './usage-range.ts'

export function StatementPage() {
  return (
    <section class="page statement">
      <h1>Statement</h1>
      <AccountTabs here="statement" />
      {session.value?.account?.credit == null ? <EmptyState title="This account is not metered" /> : <OneMonth />}
    </section>
  )
}

interface OneMonthProps {
  /** Whose, as the saved table is called; empty: one's own. */
  readonly owner?: string
  /** Without the month. */
  readonly path?: string
  readonly read?: typeof getStatement
  readonly readCsv?: typeof getStatementCsv
}

/** A month and the ways to those beside it. */
export function OneMonth(props: OneMonthProps) {
  const { owner = '', path = '/account/statement', read = getStatement, readCsv = getStatementCsv } = props
  const today = monthOf(serverNow(), 'UTC')
  const month = toMonth(query.value.get('month') ?? today)?.name ?? today
  const resource = useResource(`statement ${owner} ${month}`, (signal) => read(month, signal))
  const addressOf = (name: string) => hrefOf(`${path}?month=${name}`)
  const fileName = `statement-${owner === '' ? '' : `${owner}-`}${month}.csv`
  const save = () => tell(async () => saveText(fileName, await readCsv(month), 'text/csv'))
  return (
    <>
      <div class="filter-bar">
        <a class="icon-button" href={addressOf(monthBy(month, -1))} aria-label="Month before">
          <Icon name="left" />
        </a>
        <strong class="number">{month}</strong>
        {month < today && (
          <a class="icon-button" href={addressOf(monthBy(month, 1))} aria-label="Month after">
            <Icon name="right" />
          </a>
        )}
        <span class="dim">days of UTC</span>
        <button type="button" class="button small" onClick={() => void save()}>
          <Icon name="down" /> CSV
        </button>
      </div>
      <Loaded resource={resource} skeleton={<Skeleton rows={6} />}>
        {(statement) => <Figures statement={statement} />}
      </Loaded>
    </>
  )
}

function Figures({ statement }: { readonly statement: Statement }) {
  const { lines, rest, holds } = statement
  const isOver = statement.month < monthOf(serverNow(), 'UTC')
  const rows = [
    ...lines.map((line) => ({ ...line, name: line.endpoint ?? line.model ?? line.pool ?? 'not noted' })),
    ...(rest === null ? [] : [{ ...rest, kind: 'rest', name: 'all others' }]),
  ]
  return (
    <>
      <KeyValue
        pairs={[
          ['At the beginning', <Money key="opening" usd={statement.opening_usd} />],
          ['Added', <Money key="added" usd={statement.added_usd} />],
          ['Taken back', <Money key="taken" usd={statement.taken_back_usd} />],
          ['Charged', <Money key="charged" usd={statement.charged_usd} />],
          ['Refunded', <Money key="refunded" usd={statement.refunded_usd} />],
          [isOver ? 'At the end' : 'Now', <Money key="closing" usd={statement.closing_usd} />],
          [`Held of it, for ${formatCount(holds)}`, <Money key="held" usd={statement.held_usd} />],
        ]}
      />
      {rows.length === 0 ? (
        <EmptyState title="Nothing was charged in this month" />
      ) : (
        <table class="plain-table">
          <thead>
            <tr>
              <th scope="col">For</th>
              <th scope="col" class="right">
                Count
              </th>
              <th scope="col" class="right">
                Charged
              </th>
              <th scope="col" class="right">
                Refunded
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row, index) => (
              <tr key={`${row.kind} ${row.name} ${index}`}>
                <td>
                  <Words text={row.name} /> <span class="dim">{row.kind}</span>
                </td>
                <td class="right number">{formatCount(row.count)}</td>
                <td class="right">
                  <Money usd={row.charged_usd} />
                </td>
                <td class="right">
                  <Money usd={row.refunded_usd} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  )
}

/** Sums by name, the largest with the longest bar. */
import { Words } from '../../components/text.tsx'
import { formatCount } from '../../text/format.ts'

interface SumRow {
  readonly id: string
  readonly name: string
  /** Where its name leads; null: nowhere. */
  readonly href: string | null
  readonly count: number
  readonly value: number
  /** The value as people read it. */
  readonly shown: string
}

interface SumTableProps {
  /** Above names, counts and values. */
  readonly heads: readonly [string, string, string]
  readonly rows: readonly SumRow[]
}

export function SumTable({ heads, rows }: SumTableProps) {
  const most = Math.max(0.000001, ...rows.map(({ value }) => value))
  return (
    <table class="plain-table">
      <thead>
        <tr>
          <th scope="col">{heads[0]}</th>
          <th scope="col" class="right">
            {heads[1]}
          </th>
          <th scope="col" class="right">
            {heads[2]}
          </th>
          <th scope="col">
            <span class="unseen">Share</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ id, name, href, count, value, shown }) => (
          <tr key={id}>
            <td>
              {href === null ? (
                <Words text={name} />
              ) : (
                <a href={href}>
                  <Words text={name} />
                </a>
              )}
            </td>
            <td class="right number">{formatCount(count)}</td>
            <td class="right">
              <span class="money">{shown}</span>
            </td>
            <td class="share">
              <span class="share-bar" style={{ transform: `scaleX(${Math.max(0, value) / most})` }} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

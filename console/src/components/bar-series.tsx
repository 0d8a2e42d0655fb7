/** A series of sums as bars, and the same as a table for those who do not see them. */
import { formatUsd } from '../text/format.ts'

interface BarSeriesProps {
  readonly label: string
  readonly points: readonly { readonly key: string; readonly usd: string }[]
  /** How a value is written; left out: as money. */
  readonly format?: (value: string) => string
  /** What a bar stands for. */
  readonly unit?: string
}

const HEIGHT = 120
const GAP = 0.2

export function BarSeries({ label, points, format = formatUsd, unit = 'days' }: BarSeriesProps) {
  const values = points.map(({ usd }) => Number(usd))
  const most = Math.max(0, ...values)
  return (
    <figure class="bars">
      <svg
        role="img"
        aria-label={`${label}: ${points.length} ${unit}, most ${format(String(most))}`}
        viewBox={`0 0 ${Math.max(1, points.length)} ${HEIGHT}`}
        preserveAspectRatio="none"
      >
        {values.map((value, index) => {
          const height = Math.max(value > 0 ? 2 : 0.5, (value / (most || 1)) * (HEIGHT - 4))
          return (
            <rect key={points[index].key} x={index + GAP / 2} width={1 - GAP} y={HEIGHT - height} height={height}>
              <title>{`${points[index].key}: ${format(points[index].usd)}`}</title>
            </rect>
          )
        })}
      </svg>
      <figcaption class="bars-ends dim number">
        <span>{points[0]?.key}</span>
        <span>{points.at(-1)?.key}</span>
      </figcaption>
      <table class="unseen">
        <caption>{label}</caption>
        <tbody>
          {points.map(({ key, usd }) => (
            <tr key={key}>
              <th scope="row">{key}</th>
              <td>{format(usd)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </figure>
  )
}

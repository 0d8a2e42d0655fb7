/** How long servers computed, in all, by day and by what it was for: of one account or of all. */
import type { GpuAnswer } from '../../api/account.ts'
import { BarSeries } from '../../components/bar-series.tsx'
import { Icon } from '../../components/icon.tsx'
import { EmptyState } from '../../components/state.tsx'
import { saveText } from '../../components/text.tsx'
import { formatSpan, plural } from '../../text/format.ts'
import { SumTable } from './sum-table.tsx'
import { toCsv } from './usage-range.ts'

export const GPU_BY = {
  server: 'Server',
  weights: 'Weights',
  class: 'Node class',
  pool: 'Pool',
  job: 'Job',
} as const

interface GpuUsageProps {
  readonly usage: GpuAnswer
  readonly by: string
  /** Of the time, as the saved table is called. */
  readonly name: string
  /** Where a row leads; null: nowhere. */
  readonly hrefOfKey: (key: string) => string | null
}

const formatSeconds = (seconds: string) => formatSpan(Number(seconds) * 1000)

export function GpuUsage({ usage, by, name, hrefOfKey }: GpuUsageProps) {
  const { rows, series, runs, total_gpu_seconds: total, rest_gpu_seconds: rest } = usage
  const save = () => {
    const cells = rows.map(({ key, runs: count, gpu_seconds: seconds }) => [key, String(count), String(seconds)])
    saveText(`gpu-seconds-${name}.csv`, toCsv([[by, 'runs', 'gpu_seconds'], ...cells]), 'text/csv')
  }
  return (
    <>
      <p class="big-figure">{formatSpan(total * 1000)}</p>
      <p class="dim">
        that ComfyUI servers computed, in {plural(runs, 'run')}
        {rest !== null && ` · ${formatSpan(rest * 1000)} in no row`}{' '}
        <button type="button" class="button small" onClick={save}>
          <Icon name="down" /> CSV
        </button>
      </p>
      {rows.length === 0 ? (
        <EmptyState title="No server computed anything in this time" />
      ) : (
        <>
          <BarSeries
            label="GPU time by day"
            points={series.map(({ day, gpu_seconds: seconds }) => ({ key: day, usd: String(seconds) }))}
            format={formatSeconds}
          />
          <SumTable
            heads={[by, 'Runs', 'GPU time']}
            rows={rows.map(({ key, label, runs: count, gpu_seconds: seconds }) => ({
              ...{ id: key, name: label ?? key, href: hrefOfKey(key), count, value: seconds },
              shown: formatSpan(seconds * 1000),
            }))}
          />
        </>
      )}
    </>
  )
}

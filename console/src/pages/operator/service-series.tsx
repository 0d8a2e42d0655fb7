/** The last hour in bars: what waited and ran, what came to which end, what was spent; from when on the process has looked. */
import type { SeriesAnswer } from '../../api/admin-jobs.ts'
import { BarSeries } from '../../components/bar-series.tsx'
import { zoneName } from '../../state/preferences.ts'
import { formatCount, formatTime, formatUsd } from '../../text/format.ts'

const SHOWN = [
  ['queued', 'Waiting, at most'],
  ['running', 'Running, at most'],
  ['succeeded', 'Succeeded'],
  ['failed', 'Failed'],
  ['spend', 'Spent'],
] as const

const asCount = (value: string) => formatCount(Number(value))

export function ServiceSeries({ answer }: { readonly answer: SeriesAnswer }) {
  const from = Date.parse(answer.from)
  const keyAt = (index: number) => formatTime(from + index * answer.step_seconds * 1000, zoneName())
  // All of them are looked at together.
  const since = (answer.series[0]?.values ?? []).findIndex((value) => value !== null)
  return (
    <>
      {since !== 0 && (
        <p class="dim">
          {since === -1 ? 'Nothing is known yet' : `Known from ${keyAt(since)} on`}: each process of the service looks
          at all of it, and remembers what it saw since its own start.
        </p>
      )}
      <div class="service-series">
        {SHOWN.map(([name, label]) => {
          const values = answer.series.find((series) => series.name === name)?.values ?? []
          const isMoney = name === 'spend'
          const hasAny = values.some((value) => value !== null && Number(value) !== 0)
          if (isMoney && !hasAny) return null
          return (
            <section key={name} class="card" aria-label={label}>
              <h3>{label}</h3>
              <BarSeries
                label={label}
                unit="minutes"
                format={isMoney ? formatUsd : asCount}
                points={values.map((value, index) => ({ key: keyAt(index), usd: String(value ?? 0) }))}
              />
            </section>
          )
        })}
      </div>
    </>
  )
}

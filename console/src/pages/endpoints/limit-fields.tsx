/** What the owner of an endpoint allows: runs at a time, runs and money in a period. An empty field has no limit. */
import type { EndpointLimits } from '../../api/endpoints.ts'
import { TextField } from './publish/input-card.tsx'

export const PERIOD_WORDS: Readonly<Record<string, string>> = {
  hour: 'an hour',
  day: 'a day',
  month: 'a month',
  ever: 'in all',
}

/** By the name of the field; '' is no limit. */
export type LimitTexts = Readonly<Record<string, string>>

export function toLimitTexts({ in_flight: inFlight, runs, spend_usd: spend }: EndpointLimits): LimitTexts {
  const texts: Record<string, string> = { in_flight: inFlight === null ? '' : String(inFlight) }
  for (const period of Object.keys(PERIOD_WORDS)) {
    texts[`runs.${period}`] = String(runs[period] ?? '')
    texts[`spend_usd.${period}`] = spend[period] ?? ''
  }
  return texts
}

/** What was typed and is no number goes to the service as it is, which says what is wrong with it. */
export function toLimits(texts: LimitTexts) {
  const numberOf = (name: string) => {
    const text = texts[name]?.trim() ?? ''
    return text === '' ? null : /^\d{1,9}$/.test(text) ? Number(text) : text
  }
  const periods = Object.keys(PERIOD_WORDS)
  return {
    in_flight: numberOf('in_flight'),
    runs: Object.fromEntries(periods.map((period) => [period, numberOf(`runs.${period}`)])),
    spend_usd: Object.fromEntries(periods.map((period) => [period, texts[`spend_usd.${period}`]?.trim() || null])),
  }
}

interface LimitFieldsProps {
  readonly texts: LimitTexts
  readonly onTexts: (texts: LimitTexts) => void
}

export function LimitFields({ texts, onTexts }: LimitFieldsProps) {
  const field = (name: string, label: string) => (
    <TextField
      key={name}
      label={label}
      hint="no limit"
      text={texts[name] ?? ''}
      problem={null}
      onText={(text) => onTexts({ ...texts, [name]: text })}
    />
  )
  const periods = Object.entries(PERIOD_WORDS)
  return (
    <details open={Object.values(texts).some((text) => text !== '')}>
      <summary>Limits</summary>
      <p class="dim">
        Calls beyond them are refused until there is room again. Periods are those of the calendar in UTC.
      </p>
      <div class="limit-fields">
        {field('in_flight', 'Runs at a time')}
        {periods.map(([period, words]) => field(`runs.${period}`, `Runs ${words}`))}
        {periods.map(([period, words]) => field(`spend_usd.${period}`, `US dollars ${words}`))}
      </div>
    </details>
  )
}

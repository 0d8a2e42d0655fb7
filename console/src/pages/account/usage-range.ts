/** A month as the service is asked for it: days in the zone that the page names. Pure. */
export interface Month {
  /** `2026-11`. */
  readonly name: string
  readonly from: string
  /** The day after the last. */
  readonly to: string
}

export function toMonth(name: string): Month | null {
  const match = /^(\d{4})-(\d{2})$/.exec(name)
  if (match === null) return null
  const [year, month] = [Number(match[1]), Number(match[2])]
  if (month < 1 || month > 12) return null
  const next = month === 12 ? [year + 1, 1] : [year, month + 1]
  return { name, from: `${name}-01`, to: `${next[0]}-${String(next[1]).padStart(2, '0')}-01` }
}

export function monthOf(now: number, zone: string): string {
  return new Intl.DateTimeFormat('sv-SE', { year: 'numeric', month: '2-digit', timeZone: zone }).format(now)
}

export function monthBy(name: string, by: 1 | -1): string {
  const [year, month] = name.split('-').map(Number)
  const index = year * 12 + month - 1 + by
  return `${Math.floor(index / 12)}-${String((index % 12) + 1).padStart(2, '0')}`
}

/** A cell that a spreadsheet would read as a formula gets a quote before it. */
export function toCsv(rows: readonly (readonly string[])[]): string {
  const cell = (text: string) => {
    const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
  }
  return `${rows.map((row) => row.map(cell).join(',')).join('\r\n')}\r\n`
}

export const USAGE_TIMES = ['today', 'yesterday', '7d', '30d', 'month'] as const
export type UsageTime = (typeof USAGE_TIMES)[number]

/** The days of a time in a zone: `to` is the day after the last. */
export function daysOf(time: UsageTime, now: number, zone: string): Readonly<Record<'from' | 'to' | 'last', string>> {
  const today = new Intl.DateTimeFormat('sv-SE', { dateStyle: 'short', timeZone: zone }).format(now)
  const last = time === 'yesterday' ? dayBy(today, -1) : today
  const from =
    time === 'month'
      ? `${today.slice(0, 7)}-01`
      : time === '7d' || time === '30d'
        ? dayBy(today, 1 - parseInt(time, 10))
        : last
  return { from, to: dayBy(last, 1), last }
}

/** Days are counted without a zone, so that none has 23 or 25 hours. */
function dayBy(day: string, by: number): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + by * 86_400_000).toISOString().slice(0, 10)
}

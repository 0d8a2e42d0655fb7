/** Numbers as the console writes them: spans, moments, money, sizes. */
import { second, serverNow } from '../state/clock.ts'
import { zoneName } from '../state/preferences.ts'
import { formatAgo, formatDateTime, formatRunning, formatSpan, formatUsd } from '../text/format.ts'

/** From one moment to another, or to now, then ticking. */
export function Duration({ from, to }: { readonly from: string | null; readonly to: string | null }) {
  if (from === null) return <span class="dim">–</span>
  if (to !== null) return <span class="number">{formatSpan(Date.parse(to) - Date.parse(from))}</span>
  const now = Math.max(second.value, serverNow() - 1000)
  return <span class="number">{formatRunning(now - Date.parse(from))}</span>
}

export function Ago({ at }: { readonly at: string }) {
  const moment = Date.parse(at)
  return (
    <time class="number" dateTime={at} title={`${formatDateTime(moment, zoneName())} ${zoneName()}`}>
      {formatAgo(moment, second.value)}
    </time>
  )
}

export function Moment({ at }: { readonly at: string }) {
  return (
    <time class="number" dateTime={at} title={zoneName()}>
      {formatDateTime(Date.parse(at), zoneName())}
    </time>
  )
}

export function Money({ usd }: { readonly usd: string | null }) {
  return usd === null ? <span class="dim">–</span> : <span class="money">{formatUsd(usd)}</span>
}

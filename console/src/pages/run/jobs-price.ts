/** What jobs may cost before they are run. Pure. */
import { formatUsd } from '../../text/format.ts'

interface JobPrice {
  readonly per_second_usd: string
  /** Set aside when a job is submitted. */
  readonly hold_usd: string
}

const MICROS = 1_000_000

/** null: jobs cost nothing here. */
export function jobsPrice(price: JobPrice | null, count: number): string {
  if (price === null) return ''
  // In millionths, as the ledger counts, so that many small ones add up to what is held.
  const held = (Math.round(Number(price.hold_usd) * MICROS) * count) / MICROS
  return `${formatUsd(price.per_second_usd)} a second, ${formatUsd(held.toFixed(6))} set aside`
}

/** What a call cost, in credits for our clients and in dollars for gateways that read those; nothing when it is not reported. */
import { MICROS_PER_USD } from '../../../lib/usd.ts'
import type { BrandHeaders } from './brand-headers.ts'

export function createCostHeaders(brand: BrandHeaders, creditsPerUsd: number) {
  return (costMicros: number | null): readonly string[] => {
    if (costMicros === null) return []
    const usd = costMicros / MICROS_PER_USD
    const credits = (usd * creditsPerUsd).toFixed(2)
    const headers: string[] = []
    for (const name of brand.creditsUsed) headers.push(name, credits)
    headers.push('x-litellm-response-cost', String(usd), 'x-litellm-total-tokens', '0')
    return headers
  }
}

/** The range of a history that a query asks for. What makes no sense is left out, as ComfyUI does with an empty value. */
import { ServiceError } from '../../domain/errors.ts'
import type { HistoryRange } from '../../domain/jobs/read/recorded-jobs.ts'

// As many as ComfyUI keeps.
const MAX_ITEMS = 10_000

export function readHistoryRange(query: URLSearchParams): HistoryRange {
  const maxItems = readInteger(query, 'max_items')
  const offset = readInteger(query, 'offset')
  return {
    maxItems: maxItems === null || maxItems < 0 ? MAX_ITEMS : Math.min(maxItems, MAX_ITEMS),
    offset: offset === null || offset < 0 ? null : offset,
  }
}

/** null when it is left out or empty. */
export function readInteger(query: URLSearchParams, name: string): number | null {
  const text = query.get(name)?.trim() ?? ''
  if (text === '') return null
  if (!/^[+-]?\d{1,9}$/.test(text)) throw new ServiceError('invalid_request', `${name} must be an integer`)
  return Number(text)
}

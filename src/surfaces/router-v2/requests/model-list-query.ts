/** `limit` and `cursor` of the model list. A limit is corrected, never refused, as long as it is a number. */
import { RouterError } from '../../../domain/models/router-error.ts'
import { readQuery } from '../../kit/request-url.ts'

export interface ListQuery {
  readonly limit: number
  readonly cursor: string | null
}

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 100
const WHOLE = /^-?\d+$/

export function readListQuery(url: string): ListQuery {
  const pairs = readQuery(url)
  if (pairs === null) throw new RouterError('malformed', 'the query cannot be read')
  const values = new Map(pairs)
  return { limit: readLimit(values.get('limit')), cursor: readCursor(values.get('cursor')) }
}

function readLimit(text: string | undefined): number {
  if (text === undefined) return DEFAULT_LIMIT
  if (!WHOLE.test(text)) throw new RouterError('malformed', 'limit must be a whole number')
  const limit = Number(text)
  return limit <= 0 ? DEFAULT_LIMIT : Math.min(limit, MAX_LIMIT)
}

function readCursor(text: string | undefined): string | null {
  if (text === '') throw new RouterError('malformed', 'cursor is empty; leave it out to begin the list')
  return text ?? null
}

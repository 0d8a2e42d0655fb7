/**
 * Page cursors: opaque to the caller, and bound to the filters of the walk they came from. They are not secret and not
 * signed: whoever makes one up only chooses where to start in a list that is its own anyway.
 */
import { createHash } from 'node:crypto'
import { ServiceError } from '../../domain/errors.ts'
import { isUuid } from '../../lib/ids.ts'

export interface CursorPosition {
  readonly createdAt: Date
  readonly id: string
}

const MAX_LENGTH = 512
const LATEST_MS = 8.64e15

/** `filters` is any text that is equal exactly when the filters are. */
export function encodeCursor(position: CursorPosition, filters: string): string {
  return Buffer.from(JSON.stringify([position.createdAt.getTime(), position.id, digest(filters)])).toString('base64url')
}

export function readCursor(text: string, filters: string): CursorPosition {
  const parts = text.length > MAX_LENGTH ? null : decode(text)
  if (parts === null) throw new ServiceError('invalid_cursor', 'cursor is not one that this service gave out')
  const [createdAtMs, id, filtersDigest] = parts
  if (filtersDigest !== digest(filters)) {
    throw new ServiceError(
      'invalid_cursor',
      'cursor belongs to a list with other filters; repeat the filters of its page',
    )
  }
  return { createdAt: new Date(createdAtMs), id }
}

function decode(text: string): [number, string, string] | null {
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'))
    if (!Array.isArray(value) || value.length !== 3) return null
    const [createdAtMs, id, filtersDigest] = value as unknown[]
    const isValid = Number.isInteger(createdAtMs) && Math.abs(createdAtMs as number) <= LATEST_MS
    return isValid && typeof id === 'string' && isUuid(id) && typeof filtersDigest === 'string'
      ? [createdAtMs as number, id, filtersDigest]
      : null
  } catch {
    return null
  }
}

function digest(filters: string): string {
  return createHash('sha256').update(filters).digest('base64url').slice(0, 12)
}

/** What an error of the server or of its connection means for the operation that met it. */
import { isHostAway } from '../../../../../lib/postgres/driver.ts'
import { ServiceError, storeUnavailable } from '../../../../domain/errors.ts'

type PostgresFault =
  /** The server is away, restarts, or takes no more connections: it may answer again in a moment. */
  | 'unavailable'
  /** The transaction was undone in favour of another one: it may run again. */
  | 'undone'
  | 'disk_full'
  | 'no_partition'
  | 'other'

const UNDONE = new Set(['40001', '40P01'])
const UNAVAILABLE = new Set([
  // Admin shutdown, crash shutdown, cannot connect now, database dropped, idle session.
  ...['57P01', '57P02', '57P03', '57P04', '57P05'],
  // Idle in transaction, transaction timed out, out of memory, statement and lock timed out.
  ...['25P03', '25P04', '53200', '57014', '55P03'],
  // Another server takes the writes now; the password was changed under a running service.
  ...['25006', '28P01', '28000'],
])

export function toFault(error: unknown): PostgresFault {
  if (!(error instanceof Error)) return 'other'
  const code = (error as Error & { readonly code?: string }).code ?? ''
  if (UNDONE.has(code)) return 'undone'
  if (code === '53100') return 'disk_full'
  if (code === '23514' && /no partition of relation/.test(error.message)) return 'no_partition'
  return UNAVAILABLE.has(code) || isHostAway(error) ? 'unavailable' : 'other'
}

const TIMED_OUT = new Set(['55P03', '57014'])

/** A statement waited too long for a lock or took too long: the server itself is there. */
export function isTimeout(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = (error as Error & { readonly code?: string }).code ?? ''
  return TIMED_OUT.has(code) || isTimeout(error.cause)
}

/** A row was refused because this unique index has its key already. */
export function isDuplicateOf(error: unknown, index: string): boolean {
  const { code, constraint } = error as { readonly code?: string; readonly constraint?: string }
  return code === '23505' && constraint === index
}

/** The error for the caller: a refusal if the server is away or its disk is full, otherwise the error itself. */
export function toStoreError(error: unknown): unknown {
  if (error instanceof ServiceError) return error
  const fault = toFault(error)
  if (fault === 'unavailable') return storeUnavailable(error)
  if (fault !== 'disk_full') return error
  return new ServiceError('storage_full', 'The disk of the database is full.', { cause: error })
}

import { ServiceError } from '../errors.ts'
import { KEY_MAX_LENGTH } from './key-record.ts'

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are exactly what is refused
const CONTROL = /[\x00-\x1f\x7f]/

/**
 * The key of a request, or null when it has none. Hand in all values of the header: a client that repeats it does not know
 * which key it uses, and joined values would silently be a third one.
 */
export function readIdempotencyKey(header: string | readonly string[] | undefined): string | null {
  if (header === undefined) return null
  const values = typeof header === 'string' ? [header] : header
  const [key] = values
  if (key === undefined) return null
  if (values.length > 1) throw refuse('Idempotency-Key may be sent only once')
  if (key.trim() === '' || key.length > KEY_MAX_LENGTH) {
    throw refuse(`Idempotency-Key must have 1 to ${KEY_MAX_LENGTH} characters`)
  }
  if (CONTROL.test(key)) throw refuse('Idempotency-Key must not contain control characters')
  return key
}

function refuse(message: string): ServiceError {
  return new ServiceError('invalid_request', message, { details: { header: 'Idempotency-Key' } })
}

/** What keeps a database from being opened, in words for the operator. The address is shown without its password. */
import { isStoreAway } from '../../../../domain/errors.ts'
import { StoreOpenError } from '../../../../domain/store.ts'

const ADVICE: Readonly<Record<string, string>> = {
  '28P01': 'the password is wrong; give it in ATELIER_DATABASE or by --database-password-file',
  '28000': 'the server does not let this user in; look at its pg_hba.conf',
  '3D000': 'there is no such database; make it with: createdb',
  '42501': 'the user may not use or create tables there; make it the owner of the database',
  '53300': 'the server takes no more connections; raise its max_connections, or lower databasePool',
}

export function toOpenError(error: unknown, url: string): unknown {
  if (error instanceof StoreOpenError) return error
  const cause = isStoreAway(error) ? (error as Error).cause : error
  const { code = '', message = '' } = (cause ?? {}) as { readonly code?: string; readonly message?: string }
  const advice = Object.hasOwn(ADVICE, code) ? ADVICE[code] : null
  if (advice === null && !isStoreAway(error) && !isTlsTrouble(code, message)) return error
  const reason = advice ?? `${message || code || 'no answer'}; check its address, and that the server runs`
  return new StoreOpenError('unusable', `The database at ${toShown(url)} cannot be used: ${reason}.`, { cause: error })
}

function isTlsTrouble(code: string, message: string): boolean {
  return /CERT|TLS|SSL|SELF_SIGNED/.test(code) || /SSL|certificate|client password must be/i.test(message)
}

function toShown(url: string): string {
  return url.replace(/^(postgres(?:ql)?:\/\/)[^@/]*@/, '$1')
}

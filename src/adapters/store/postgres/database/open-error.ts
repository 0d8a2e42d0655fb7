/** What keeps a database from being opened, in words for the operator. The address is shown without its user and password. */
import { parseAddress, readAddress, showAddress } from '../../../../../lib/postgres/address.ts'
import { isHostAway } from '../../../../../lib/postgres/driver.ts'
import { isStoreAway } from '../../../../domain/errors.ts'
import { StoreOpenError } from '../../../../domain/store.ts'

const PASSWORD_WAYS = 'ATELIER_DATABASE, PGPASSWORD or --database-password-file'

/** What stays as it is until somebody changes the settings or the server, by the code of the error. */
const MISTAKES: Readonly<Record<string, string>> = {
  '28P01': `the password is wrong; give it in ${PASSWORD_WAYS}`,
  NO_PASSWORD: `the server asks for a password, and none is given; give it in ${PASSWORD_WAYS}`,
  NO_BINDING:
    'the server does not bind passwords to the TLS connection; leave channel_binding=require out, if that is as it should be',
  '28000':
    'the server does not let this user in from here; look at its pg_hba.conf, and at sslmode and sslcert of the address',
  '3D000': 'there is no such database; make it with: createdb',
  '42501': 'the user may not use or create tables there; make it the owner of the database',
}
const FULL = 'the server takes no more connections; raise its max_connections, or lower databasePool'

export function toOpenError(error: unknown, url: string): unknown {
  if (error instanceof StoreOpenError) return error
  const cause = isStoreAway(error) ? (error as Error).cause : error
  const { code = '', message = '' } = (cause ?? {}) as { readonly code?: string; readonly message?: string }
  const shown = showAddress(readAddress(parseAddress(url)))
  const toError = (reason: 'misconfigured' | 'unusable', text: string) =>
    new StoreOpenError(reason, `The database at ${shown} cannot be used: ${text}.`, { cause: error })
  if (code === '28000' && /no encryption/.test(message))
    return toError('misconfigured', 'the server lets nobody in without TLS; add sslmode=verify-full to the address')
  if (Object.hasOwn(MISTAKES, code)) return toError('misconfigured', MISTAKES[code])
  if (code === '53300') return toError('unusable', FULL)
  if (isStoreAway(error) || isHostAway(cause))
    return toError('unusable', `${message || code || 'no answer'}; check its address, and that the server runs`)
  const tls = explainTls(code, message)
  return tls === null ? error : toError('misconfigured', tls)
}

function explainTls(code: string, message: string): string | null {
  if (/does not support SSL/.test(message))
    return 'the server has no TLS; switch its ssl on, or give sslmode=disable where nobody can listen'
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return 'the certificate of the server is for another name; use that name, or sslmode=verify-ca with your own authority'
  if (code === 'CERT_HAS_EXPIRED') return 'the certificate of the server has expired; renew it'
  if (/SELF_SIGNED|UNABLE_TO|UNTRUSTED|CERT_/.test(code))
    return `the certificate of the server is not trusted (${message}); name its authority by sslrootcert=<file>`
  if (/SSL|TLS/.test(code) || /SSL|TLS|certificate|SASL/.test(message))
    return `no secure connection could be made (${message}); look at sslmode, sslcert and sslkey of the address`
  return null
}

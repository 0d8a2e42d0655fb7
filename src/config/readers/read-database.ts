/**
 * Reads the address of a Postgres database. Its password goes into a secret at once; what remains may be shown. The messages
 * here never repeat the text, which may hold that password.
 */
import { Secret } from '../secrets.ts'
import { isLoopback } from './read-network.ts'

/** `require` encrypts and trusts any server; `verify-ca` checks who signed its certificate, `verify-full` also its name. */
export type TlsMode = (typeof TLS_MODES)[number]

interface DatabaseAddress {
  /** For the client library: without the password, and without what `tls` says. */
  readonly url: string
  /** For messages. */
  readonly shown: string
  readonly tls: TlsMode
  /** As it was given; null: the authorities that the runtime knows. */
  readonly rootCertificate: string | null
  readonly password: Secret<string> | null
}

const TLS_MODES = ['disable', 'require', 'verify-ca', 'verify-full'] as const
const PARAMETERS = ['sslmode', 'sslrootcert', 'host']
const EXAMPLE = 'give for example postgres://atelier@db.example.com:5432/atelier?sslmode=verify-full'
const MAX_LENGTH = 2048

export function readDatabase(text: string): DatabaseAddress {
  const url = /^postgres(ql)?:\/\//.test(text) && text.length <= MAX_LENGTH ? parse(text) : null
  if (url === null) throw new Error(`is not the address of a Postgres database; ${EXAMPLE}`)
  const { searchParams } = url
  const unknown = [...searchParams.keys()].find((name) => !PARAMETERS.includes(name))
  if (unknown !== undefined)
    throw new Error(`has the parameter ${JSON.stringify(unknown)}; use sslmode and sslrootcert`)
  const socketFolder = readSocketFolder(url)
  if (url.username === '') throw new Error(`names no user; ${EXAMPLE}`)
  const name = url.pathname.slice(1)
  if (name === '' || name.includes('/')) throw new Error(`names no database; ${EXAMPLE}`)
  const isNear = socketFolder !== null || isLoopback(url.hostname.replace(/^\[|\]$/g, ''))
  return {
    url:
      socketFolder === null
        ? `postgres://${url.username}@${url.host}/${name}`
        : `postgres://${url.username}@/${name}?host=${encodeURIComponent(socketFolder)}`,
    shown: `postgres://${socketFolder ?? url.host}/${name}`,
    tls: readTls(searchParams.get('sslmode'), isNear),
    rootCertificate: readRootCertificate(searchParams),
    password: url.password === '' ? null : new Secret(decodeURIComponent(url.password)),
  }
}

// In place of the host that an address with a socket does not have: the parser refuses a user without a host.
const NO_HOST = 'socket.invalid'

function parse(text: string): URL | null {
  try {
    const url = new URL(text.replace(/^([a-z]+:\/\/[^/?#]*@)\//, `$1${NO_HOST}/`))
    decodeURIComponent(url.password)
    return url.hash === '' ? url : null
  } catch {
    return null
  }
}

function readSocketFolder(url: URL): string | null {
  const folder = url.searchParams.get('host')
  const hasHost = url.hostname !== NO_HOST
  if (hasHost && folder === null) return null
  if (hasHost || folder === null || !folder.startsWith('/')) {
    throw new Error(
      'names a host and a folder of a socket, or none of them; give one: …@host/name, or …@/name?host=/run/postgresql',
    )
  }
  return folder
}

function readTls(given: string | null, isNear: boolean): TlsMode {
  if (given === null && isNear) return 'disable'
  const mode = TLS_MODES.find((known) => known === given)
  if (mode !== undefined) return mode
  if (given === null) {
    throw new Error(
      'is on another machine and has no sslmode; add ?sslmode=verify-full, or sslmode=disable where nobody can listen',
    )
  }
  throw new Error(`has an sslmode that is not one of ${TLS_MODES.join(', ')}`)
}

function readRootCertificate(parameters: URLSearchParams): string | null {
  const file = parameters.get('sslrootcert')
  if (file === null || file === 'system') return null
  if (parameters.get('sslmode')?.startsWith('verify-') === true && file !== '') return file
  throw new Error('has an sslrootcert that nothing is checked against; use it with sslmode=verify-ca or verify-full')
}

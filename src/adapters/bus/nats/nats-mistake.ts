/**
 * Which failures to connect no repetition mends: credentials that the servers refuse, and certificates that do not fit. Everything
 * else, like servers that are away, may pass. Texts of servers and files are not repeated here: they may hold a secret.
 */
import { readFileSync } from 'node:fs'
import {
  type Authenticator,
  AuthorizationError,
  ConnectionError,
  credsAuthenticator,
  nkeyAuthenticator,
  UserAuthenticationExpiredError,
} from '@nats-io/transport-node'

/** What the operator has to change. */
interface NatsMistake {
  readonly fault: string
  readonly remedy: string
}

/** What this process shows to the servers. */
type ShownCredentials = 'nothing' | 'password' | 'token' | 'file'

/** Ends an attempt to connect for good. */
export class NatsRefusal extends Error implements NatsMistake {
  readonly fault: string
  readonly remedy: string

  constructor({ fault, remedy }: NatsMistake) {
    super(`${fault}; ${remedy}`)
    this.name = 'NatsRefusal'
    this.fault = fault
    this.remedy = remedy
  }
}

const REFUSED: Readonly<Record<ShownCredentials, NatsMistake>> = {
  nothing: {
    fault: 'the servers want credentials',
    remedy: 'set ATELIER_BUS to an address with user:password@ or token@, or name a file with ?credentials=<file>',
  },
  password: { fault: 'the servers refuse the user and the password', remedy: 'correct them in ATELIER_BUS' },
  token: {
    fault: 'the servers refuse the token',
    remedy: 'correct it in ATELIER_BUS, or give user:password@ if it was meant as a user',
  },
  file: { fault: 'the servers refuse the credentials of the file', remedy: 'correct the file that bus names' },
}

const UNKNOWN_AUTHORITY = [
  ...['DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
  ...['UNABLE_TO_GET_ISSUER_CERT', 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'CERT_SIGNATURE_FAILURE'],
]
const OUT_OF_TIME = ['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID']
/** The other side ended the handshake because of what this one showed. */
const CLIENT_REFUSED =
  /^ERR_SSL_.*_ALERT_(CERTIFICATE_(REQUIRED|UNKNOWN|EXPIRED|REVOKED)|(BAD|UNSUPPORTED)_CERTIFICATE|UNKNOWN_CA|ACCESS_DENIED|HANDSHAKE_FAILURE)$/
const BAD_FILE = /^ERR_(OSSL|CRYPTO)_/

/** null: it may pass. */
export function toRefusal(error: unknown, shown: ShownCredentials): NatsRefusal | null {
  const mistake = toMistake(error, shown)
  return mistake === null ? null : new NatsRefusal(mistake)
}

function toMistake(error: unknown, shown: ShownCredentials): NatsMistake | null {
  if (error instanceof AuthorizationError || error instanceof UserAuthenticationExpiredError) return REFUSED[shown]
  if (error instanceof UnreadableCredentials)
    return { fault: 'the file of credentials holds none', remedy: 'correct the file that bus names' }
  if (!(error instanceof Error)) return null
  const code = codeOf(error)
  if (UNKNOWN_AUTHORITY.includes(code)) {
    const fault = `the certificate of the servers is not from an authority that is trusted here (${code})`
    return { fault, remedy: 'name your own authority with ?sslrootcert=<file> in bus' }
  }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return {
      fault: 'the certificate of the servers is for other names',
      remedy: 'name a server as its certificate does',
    }
  if (OUT_OF_TIME.includes(code))
    return { fault: `the certificate of the servers is out of time (${code})`, remedy: 'renew it, or set the clock' }
  if (CLIENT_REFUSED.test(code))
    return { fault: `the servers refuse the certificate of this process (${code})`, remedy: CLIENT_FILES }
  if (BAD_FILE.test(code))
    return { fault: `a certificate or key that bus names cannot be used (${code})`, remedy: CLIENT_FILES }
  if (error instanceof ConnectionError && error.message.includes("does not support 'tls'"))
    return { fault: 'the servers do not encrypt', remedy: 'use nats:// where nobody can listen, or set up TLS there' }
  return null
}

const CLIENT_FILES = 'correct sslcert=<file> and sslkey=<file> in bus'

function codeOf(error: Error): string {
  const own = 'code' in error ? error.code : undefined
  if (typeof own === 'string') return own
  return error.cause instanceof Error ? codeOf(error.cause) : ''
}

const SEED = /^\s*(SU[A-Z2-7]{56})\s*$/

/**
 * Credentials from a file, as the tools of NATS make it, or the seed of an nkey, read anew for each attempt because they are changed
 * while a process runs. A file that is being replaced may be missing, or be half of what it will be: then what was good before
 * counts. The client would give the connection up for good.
 */
export function createFileAuthenticator(file: string): Authenticator {
  let good: Authenticator | null = null
  return (nonce) => {
    try {
      const read = toAuthenticator(readFileSync(file, 'utf8'))
      const said = read(nonce)
      good = read
      return said
    } catch (error) {
      if (good === null) throw new UnreadableCredentials('the file of credentials cannot be read', { cause: error })
      return good(nonce)
    }
  }
}

/** There is no such file, or it holds no credentials. */
class UnreadableCredentials extends Error {}

/** Both parts of one file: while it is replaced, reading it twice could give halves that do not belong together. */
function toAuthenticator(text: string): Authenticator {
  const encoder = new TextEncoder()
  const seed = SEED.exec(text)?.[1]
  return seed === undefined
    ? credsAuthenticator(encoder.encode(text.replaceAll('\r\n', '\n')))
    : nkeyAuthenticator(encoder.encode(seed))
}

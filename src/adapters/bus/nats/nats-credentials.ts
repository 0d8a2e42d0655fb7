/**
 * Credentials from a file, as the tools of NATS make it, or the seed of an nkey, read anew for each attempt because they are changed
 * while a process runs. A file that is being replaced may be missing, or be half of what it will be: then what was good before
 * counts. The client would give the connection up for good.
 */
import { readFileSync } from 'node:fs'
import { type Authenticator, credsAuthenticator, nkeyAuthenticator } from '@nats-io/transport-node'

const SEED = /^\s*(SU[A-Z2-7]{56})\s*$/

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
export class UnreadableCredentials extends Error {}

/** Both parts of one file: while it is replaced, reading it twice could give halves that do not belong together. */
function toAuthenticator(text: string): Authenticator {
  const encoder = new TextEncoder()
  const seed = SEED.exec(text)?.[1]
  return seed === undefined
    ? credsAuthenticator(encoder.encode(text.replaceAll('\r\n', '\n')))
    : nkeyAuthenticator(encoder.encode(seed))
}

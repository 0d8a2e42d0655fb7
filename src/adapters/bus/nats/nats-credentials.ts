/**
 * Credentials from a file, as the tools of NATS make it, read anew for each attempt because they are changed while a process runs. A
 * file that is being replaced may be missing, or be half of what it will be: then what was good before counts. The client would
 * give the connection up for good.
 */
import { readFileSync } from 'node:fs'
import { type Authenticator, credsAuthenticator } from '@nats-io/transport-node'

export function createFileAuthenticator(file: string): Authenticator {
  let good: Uint8Array | null = null
  return (nonce) => {
    try {
      const bytes = readFileSync(file)
      // Both parts of one file: while it is replaced, reading it twice could give halves that do not belong together.
      const said = credsAuthenticator(bytes)(nonce)
      good = bytes
      return said
    } catch (error) {
      if (good === null) throw error
      return credsAuthenticator(good)(nonce)
    }
  }
}

/**
 * Why a server ends connections after the handshake. With TLS 1.3 it refuses the certificate of a client only then, and the client
 * library reports a timeout whatever the reason was. So the handshake is made once more here, to see the reason.
 */
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect as connectPlain } from 'node:net'
import { type ConnectionOptions, connect as connectSecure } from 'node:tls'
import { settlesWithin } from '../../../../lib/waiting/sleep.ts'

interface ProbeOptions {
  /** `host:port`. */
  readonly server: string
  readonly clientCertificateFiles: { readonly certificate: string; readonly key: string } | undefined
}

// A server that has nothing against the certificate waits for the client to speak.
const ANSWER_MS = 500
const PROBE_MS = 1500

/** null: nothing was wrong with the handshake, or the server could not be asked. */
export async function findHandshakeFault(options: ProbeOptions): Promise<Error | null> {
  const { hostname, port } = new URL(`tcp://${options.server}`)
  const socket = connectPlain(Number(port), hostname.replace(/^\[|\]$/g, ''))
  // It may break after the answer is known.
  socket.on('error', () => {})
  const asking = ask().catch(() => null)
  try {
    return (await settlesWithin(asking, PROBE_MS)) ? await asking : null
  } finally {
    socket.destroy()
  }

  async function ask(): Promise<Error | null> {
    // The server speaks first, and in the clear.
    await once(socket, 'data')
    const secure = connectSecure({ socket, ...(await readFiles(options)) })
    secure.on('error', () => {})
    const fault = once(secure, 'error').then(([error]) => error as Error)
    try {
      return (await settlesWithin(fault, ANSWER_MS)) ? await fault : null
    } finally {
      secure.destroy()
    }
  }
}

/** Whose certificate the server has is not the question here, and nothing is said to it. */
async function readFiles({ clientCertificateFiles: own }: ProbeOptions): Promise<ConnectionOptions> {
  const unchecked = { rejectUnauthorized: false }
  if (own === undefined) return unchecked
  return { ...unchecked, cert: await readFile(own.certificate), key: await readFile(own.key) }
}

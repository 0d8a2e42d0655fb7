/**
 * Sends a large file so that it goes on where it was after a broken line or a restart of the server (tus 1.0). One request carries all
 * that is missing; the server keeps what arrives of it and says how much that was.
 */

import { open } from 'node:fs/promises'
import { openBlake3 } from '../../../lib/files/blake3.ts'
import { createBackoff, sleep } from '../../../lib/waiting/sleep.ts'

/** Larger files are sent so. */
export const RESUMABLE_FROM_BYTES = 64 * 1024 * 1024

interface SendOptions {
  /** Throws what it throws for refusals and broken lines. */
  readonly call: (link: string, init: RequestInit) => Promise<Response>
  readonly metadata: Readonly<Record<string, string>>
  /** Whether the same may work later. */
  readonly mayPass: (error: unknown) => boolean
  readonly signal: AbortSignal
}

const TUS = { 'Tus-Resumable': '1.0.0' }
const PART = 'application/offset+octet-stream'

/** Returns the id of the asset. */
export async function sendResumable(file: Blob, { call, metadata, mayPass, signal }: SendOptions): Promise<string> {
  const pairs = Object.entries(metadata).map(([name, value]) => `${name} ${Buffer.from(value).toString('base64')}`)
  const headers = { ...TUS, 'Upload-Length': String(file.size), 'Upload-Metadata': pairs.join(',') }
  const { persist, succeed } = createPersistence({ mayPass, signal })

  const create = () => call('/uploads', { method: 'POST', headers, signal })
  let created: Response | null = null
  while (created === null) created = await persist(create)
  const link = created.headers.get('Location') ?? ''
  let answer: Response | null = created
  for (let offset = 0; ; ) {
    const assetId = answer?.headers.get('Upload-Asset') ?? null
    if (assetId !== null) return assetId
    const reached = Number(answer?.headers.get('Upload-Offset') ?? offset)
    if (reached > offset) succeed()
    offset = reached
    const from = { ...TUS, 'Content-Type': PART, 'Upload-Offset': String(offset) }
    const send = () => call(link, { method: 'PATCH', headers: from, body: file.slice(offset), signal })
    // Whatever became of it, the server knows how far it came.
    answer = (await persist(send)) ?? (await persist(() => call(link, { method: 'HEAD', headers: TUS, signal })))
  }
}

interface Persistence {
  /** null: the attempt failed, a pause is over, and it may be made again. Throws errors that will not pass, and after too many failures. */
  persist<Answer>(attempt: () => Promise<Answer>): Promise<Answer | null>
  /** Progress was made: failures are counted from zero again. */
  succeed(): void
}

interface PersistenceOptions {
  /** Whether the same attempt may work later. */
  readonly mayPass: (error: unknown) => boolean
  readonly signal: AbortSignal
}

// About five minutes without a single byte.
const MAX_FAILURES = 20
const PAUSES = { firstMs: 250, maxMs: 20_000 }

export function createPersistence({ mayPass, signal }: PersistenceOptions): Persistence {
  const backoff = createBackoff(PAUSES)
  let failures = 0
  return {
    async persist(attempt) {
      try {
        return await attempt()
      } catch (error) {
        signal.throwIfAborted()
        if (!mayPass(error) || ++failures > MAX_FAILURES) throw error
        await sleep(backoff.nextMs(), signal)
        signal.throwIfAborted()
        return null
      }
    },
    succeed() {
      failures = 0
      backoff.reset()
    },
  }
}

const CHUNK_BYTES = 1024 * 1024

/** BLAKE3 of a file, in hex. Throws what reading throws. */
export async function hashFile(file: string): Promise<string> {
  const blake3 = await openBlake3()
  await using handle = await open(file, 'r')
  const hasher = blake3.createHasher()
  const chunk = Buffer.alloc(CHUNK_BYTES)
  while (true) {
    const { bytesRead } = await handle.read(chunk, 0, chunk.length)
    if (bytesRead === 0) return hasher.digest()
    hasher.update(chunk.subarray(0, bytesRead))
  }
}

/**
 * Sends a large file so that it goes on where it was after a broken line or a restart of the server (tus 1.0). One request carries all
 * that is missing; the server keeps what arrives of it and says how much that was.
 */
import { createBackoff } from '../../../lib/waiting/backoff.ts'
import { sleep } from '../../../lib/waiting/sleep.ts'

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
// About five minutes without a single byte.
const MAX_FAILURES = 20
const PAUSES = { firstMs: 250, maxMs: 20_000 }

/** Returns the id of the asset. */
export async function sendResumable(file: Blob, { call, metadata, mayPass, signal }: SendOptions): Promise<string> {
  const pairs = Object.entries(metadata).map(([name, value]) => `${name} ${Buffer.from(value).toString('base64')}`)
  const headers = { ...TUS, 'Upload-Length': String(file.size), 'Upload-Metadata': pairs.join(',') }
  const backoff = createBackoff(PAUSES)
  let failures = 0

  /** Tries again until something has come of it, or nothing has for long. */
  async function persist(attempt: () => Promise<Response>): Promise<Response | null> {
    try {
      return await attempt()
    } catch (error) {
      signal.throwIfAborted()
      if (!mayPass(error) || ++failures > MAX_FAILURES) throw error
      await sleep(backoff.nextMs(), signal)
      signal.throwIfAborted()
      return null
    }
  }

  const create = () => call('/uploads', { method: 'POST', headers, signal })
  let created: Response | null = null
  while (created === null) created = await persist(create)
  const link = created.headers.get('Location') ?? ''
  let answer: Response | null = created
  for (let offset = 0; ; ) {
    const assetId = answer?.headers.get('Upload-Asset') ?? null
    if (assetId !== null) return assetId
    const reached = Number(answer?.headers.get('Upload-Offset') ?? offset)
    if (reached > offset) {
      failures = 0
      backoff.reset()
    }
    offset = reached
    const from = { ...TUS, 'Content-Type': PART, 'Upload-Offset': String(offset) }
    const send = () => call(link, { method: 'PATCH', headers: from, body: file.slice(offset), signal })
    // Whatever became of it, the server knows how far it came.
    answer = (await persist(send)) ?? (await persist(() => call(link, { method: 'HEAD', headers: TUS, signal })))
  }
}

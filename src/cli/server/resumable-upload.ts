/**
 * Sends a large file so that it goes on where it was after a broken line or a restart of the server (tus 1.0). One request carries all
 * that is missing; the server keeps what arrives of it and says how much that was.
 */
import { createPersistence } from './persistence.ts'

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

/**
 * Sends a large file piece by piece (tus 1.0), and goes on where it was after a broken line or a restart of the service. What arrives of
 * a piece counts, so pieces are only as small as a browser sends them well.
 */
import { ApiError, getJson, request } from './client.ts'

interface Standing {
  readonly offset: number
  readonly asset_id: string | null
}

const TUS = { 'Tus-Resumable': '1.0.0' }
const PIECE_BYTES = 64 * 1024 * 1024
const PAUSES_MS = [500, 1000, 2000, 4000, 8000, 15_000, 30_000, 30_000, 30_000]
const PASSING: ReadonlySet<number | null> = new Set([null, 409, 423, 429, 500, 502, 503, 504])

const mayPass = (error: unknown) => error instanceof ApiError && PASSING.has(error.status)

/** What is said of the file: names and values without other than ASCII characters. Returns the id of the asset. */
export async function uploadInPieces(file: Blob, said: Readonly<Record<string, string>>): Promise<string> {
  const metadata = Object.entries(said).map(([name, value]) => `${name} ${btoa(value)}`)
  const headers = { ...TUS, 'Upload-Length': String(file.size), 'Upload-Metadata': metadata.join(',') }
  const created = await request('/api/v2/uploads', { method: 'POST', headers })
  const id = created.headers.get('Location')?.split('/').at(-1) ?? ''
  const path = `/api/v2/uploads/${id}`
  for (let [offset, failures] = [0, 0]; ; ) {
    const { asset_id: assetId, ...reached } = await sendPiece().catch(async (error: unknown) => {
      const pauseMs = PAUSES_MS[failures++]
      if (!mayPass(error) || pauseMs === undefined) throw error
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
      return getJson<Standing>(path).catch(() => ({ offset, asset_id: null }))
    })
    if (assetId !== null) return assetId
    if (reached.offset > offset) failures = 0
    offset = reached.offset

    async function sendPiece(): Promise<Standing> {
      const type = { 'Content-Type': 'application/offset+octet-stream', 'Upload-Offset': String(offset) }
      const body = file.slice(offset, offset + PIECE_BYTES)
      const answer = await request(path, { method: 'PATCH', headers: { ...TUS, ...type }, body })
      return { offset: Number(answer.headers.get('Upload-Offset')), asset_id: answer.headers.get('Upload-Asset') }
    }
  }
}

/** One upload, read back whole and in part, and sometimes removed. */
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { SeededRandom } from '../../support/seeded-random.ts'
import type { Client } from './client.ts'

const LARGE_SHARE = 0.02
const MAX_SMALL_BYTES = 100_000
// Some of them go to a bucket in parts.
const MAX_LARGE_BYTES = 12_000_000
const REMOVED_SHARE = 0.25
const READ_SHARE = 0.6
const TWIN_SHARE = 0.15

/** What was uploaded last by anybody, to be sent again: the same bytes are stored once. */
export interface Twins {
  bytes: Buffer | null
}

/** Resolves with the id of an asset that stays. */
export async function runUploadSession(client: Client, random: SeededRandom, twins: Twins): Promise<string | null> {
  const bytes = toBytes(random, twins)
  const key = randomUUID()
  const answer = await client.ask('/api/v2/assets', () => ({
    method: 'POST',
    headers: { 'idempotency-key': key },
    body: toForm(key, bytes),
  }))
  const id = answer.json?.id ?? answer.json?.error?.details?.asset_id
  if (typeof id !== 'string') {
    client.flaw('contract', `an upload was refused: ${answer.status} ${JSON.stringify(answer.json)}`)
    return null
  }
  client.tell({ what: 'asset', id, account: client.account.id, sha256: sha256(bytes) })
  if (random.next() < READ_SHARE) await readBack(client, random, { id, bytes })
  if (random.next() >= REMOVED_SHARE) return id
  await pause(random.between(0, 3000))
  client.tell({ what: 'removed', id })
  const removal = await client.ask(`/api/v2/assets/${id}`, { method: 'DELETE' })
  // 404: an earlier removal took place, and its answer was lost.
  if (removal.status !== 204 && removal.status !== 404)
    client.flaw('contract', `the removal of asset ${id} answers ${removal.status}`, id)
  return null
}

function toBytes(random: SeededRandom, twins: Twins): Buffer {
  if (twins.bytes !== null && random.next() < TWIN_SHARE) return twins.bytes
  const isLarge = random.next() < LARGE_SHARE
  const bytes = randomBytes(random.between(1, isLarge ? MAX_LARGE_BYTES : MAX_SMALL_BYTES))
  twins.bytes = isLarge ? null : bytes
  return bytes
}

function toForm(key: string, bytes: Buffer): FormData {
  const form = new FormData()
  form.set('content_type', 'image/png')
  form.set('file_path', `chaos-${key}.png`)
  form.set('file', new Blob([new Uint8Array(bytes)]), 'chaos.png')
  return form
}

async function readBack(client: Client, random: SeededRandom, asset: { id: string; bytes: Buffer }): Promise<void> {
  const { id, bytes } = asset
  const path = `/api/v2/assets/${id}/content`
  const from = random.between(0, bytes.length)
  const isPart = random.next() < 0.3
  const answer = await client.ask(path, isPart ? { headers: { range: `bytes=${from}-` } } : {})
  if (answer.status !== (isPart ? 206 : 200))
    return client.flaw('lost', `asset ${id} answers ${answer.status} ${JSON.stringify(answer.json)}`, id)
  if (!Buffer.from(answer.bytes).equals(isPart ? bytes.subarray(from) : bytes))
    client.flaw('wrong bytes', `asset ${id} has other bytes than were uploaded`, id)
}

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

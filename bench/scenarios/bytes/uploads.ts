/**
 * Uploads that can be continued: their speed against that of plain ones, and a large one over a line that is cut twenty times, to a service
 * that is killed twice. `BENCH_UPLOAD_MIB` makes both smaller, for a look.
 */
import { cutAndKillUpload } from '../../../test/crash/uploads/upload-kills.ts'
import type { Figure } from '../../kit/figure.ts'
import { forkServer, type ServerChild } from '../../kit/server-child.ts'
import { type Sent, toRatio, toUpload } from '../../kit/transfer.ts'

const ROUNDS = 3
const LARGE_MIB = Number(process.env['BENCH_UPLOAD_MIB'] ?? 4096)
const FAST_MIB = Math.min(LARGE_MIB, 1024)
// The client tells how far it is ten times a second: there must be time between two cuts.
const CUTS = Math.max(1, Math.round((20 * LARGE_MIB) / 4096))
const KILLS = 2
const TUS = { 'Tus-Resumable': '1.0.0' }

export async function uploads(): Promise<Figure[]> {
  const speed = await measureSpeed()
  const report = (line: string) => console.error(`  ${line}`)
  const { addedBytes, lostBytes, seconds } = await cutAndKillUpload({
    megabytes: LARGE_MIB,
    cuts: CUTS,
    kills: KILLS,
    report,
  })
  const shared = { unit: 'MiB', direction: 'at_most', detail: { megabytes: LARGE_MIB, seconds } } as const
  return [
    speed,
    {
      ...{ ...shared, name: `memory that a resumable upload with ${CUTS} cuts and ${KILLS} kills adds`, bar: 64 },
      measured: addedBytes / 2 ** 20,
    },
    {
      ...{ ...shared, name: 'the most that is sent again after a cut or a kill', bar: 32 },
      measured: lostBytes / 2 ** 20,
    },
  ]
}

async function measureSpeed(): Promise<Figure> {
  await using atelier = await forkServer('bench/servers/atelier.ts')
  await using client = await forkServer('bench/servers/upload-client.ts')
  const [plain, resumable]: [number[], number[]] = [[], []]
  for (let round = 0; round < ROUNDS; round++) {
    const whole = await client.ask<Sent>('upload', toUpload(atelier, round, FAST_MIB))
    if (whole.status !== 201) throw new Error(`upload answered ${whole.status}: ${whole.body}`)
    plain.push(whole.millis)
    resumable.push(await sendResumable(atelier, client, round))
  }
  const name = 'a resumable upload that nothing cuts against a plain one'
  return toRatio(name, plain, resumable, { bar: 0.85, megabytes: FAST_MIB })
}

async function sendResumable(atelier: ServerChild, client: ServerChild, round: number): Promise<number> {
  const name = Buffer.from(`resumable-${round}.bin`).toString('base64')
  const startedAt = performance.now()
  const headers = { ...TUS, 'Upload-Length': String(FAST_MIB * 2 ** 20), 'Upload-Metadata': `filename ${name}` }
  const created = await fetch(`${atelier.url}/api/v2/uploads`, { method: 'POST', headers })
  const createdMs = performance.now() - startedAt
  const sent = await client.ask<Sent>('upload', {
    ...{
      url: `${atelier.url}${created.headers.get('location')}`,
      megabytes: FAST_MIB,
      head: '',
      tail: '',
      salt: round + 5000,
    },
    ...{ method: 'PATCH', contentType: 'application/offset+octet-stream', headers: { ...TUS, 'Upload-Offset': '0' } },
  })
  if (sent.status !== 204) throw new Error(`a resumable upload answered ${sent.status}: ${sent.body}`)
  return createdMs + sent.millis
}

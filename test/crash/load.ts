/**
 * Clients that do a bit of everything until the server dies under them. Only what was answered enters the ledger; a request
 * without an answer has an unknown outcome and claims nothing.
 */
import { randomUUID } from 'node:crypto'
import type { SeededRandom } from '../support/seeded-random.ts'
import { type Ledger, sha256 } from './ledger.ts'

const CLIENTS = 6

export interface Load {
  /** Resolves once every client has noticed that the server is gone. */
  readonly stopped: Promise<void>
  stop(): void
}

export function startLoad(baseUrl: string, ledger: Ledger, random: SeededRandom): Load {
  const controller = new AbortController()
  const clients = Array.from({ length: CLIENTS }, () => runClient(baseUrl, ledger, random, controller.signal))
  return {
    stopped: Promise.all(clients).then(() => {}),
    stop: () => controller.abort(),
  }
}

async function runClient(baseUrl: string, ledger: Ledger, random: SeededRandom, signal: AbortSignal): Promise<void> {
  const steps = [submit, submit, submit, upload, poll, cancel]
  try {
    while (!signal.aborted) await random.pick(steps)(baseUrl, ledger, random, signal)
  } catch (error) {
    if (error instanceof LostRecord) throw error
  }
}

/** The service contradicted something it had acknowledged: the only error that a client does not put down to the crash. */
export class LostRecord extends Error {}

type Step = (baseUrl: string, ledger: Ledger, random: SeededRandom, signal: AbortSignal) => Promise<void>

const submit: Step = async (baseUrl, ledger, random, signal) => {
  const key = randomUUID()
  const response = await fetch(`${baseUrl}/api/v2/jobs`, {
    method: 'POST',
    headers: { 'idempotency-key': key },
    body: JSON.stringify({ workflow: smallWorkflow(random) }),
    signal,
  })
  const body = (await response.json()) as { id: string }
  if (response.status === 201) ledger.jobs.push({ id: body.id, key })
}

const upload: Step = async (baseUrl, ledger, random, signal) => {
  const key = randomUUID()
  const bytes = Buffer.alloc(random.between(1, 200_000), random.between(0, 255))
  const form = new FormData()
  form.set('content_type', 'application/octet-stream')
  form.set('file_path', `crash-${key}.bin`)
  form.set('file', new Blob([bytes]), 'crash.bin')
  const response = await fetch(`${baseUrl}/api/v2/assets`, {
    method: 'POST',
    headers: { 'idempotency-key': key },
    body: form,
    signal,
  })
  const body = (await response.json()) as { id: string }
  if (response.ok) ledger.assets.push({ id: body.id, key, sha256: sha256(bytes) })
}

const poll: Step = async (baseUrl, ledger, random, signal) => {
  if (ledger.jobs.length === 0) return
  await readJob(baseUrl, ledger, random.pick(ledger.jobs).id, signal)
}

const cancel: Step = async (baseUrl, ledger, random, signal) => {
  if (ledger.jobs.length === 0 || random.next() < 0.7) return
  await fetch(`${baseUrl}/api/v2/jobs/${random.pick(ledger.jobs).id}/cancel`, { method: 'POST', signal })
}

export interface SeenJob {
  readonly id: string
  readonly status: string
  readonly outputs: readonly { readonly id: string; readonly size_bytes: number; readonly hash: string }[]
}

/** Reads a job that was acknowledged: it must be there, and a terminal state must stay what it was. */
export async function readJob(baseUrl: string, ledger: Ledger, jobId: string, signal?: AbortSignal): Promise<SeenJob> {
  const response = await fetch(`${baseUrl}/api/v2/jobs/${jobId}`, { signal })
  if (response.status !== 200) throw new LostRecord(`job ${jobId} answers ${response.status}`)
  const job = (await response.json()) as SeenJob
  const before = ledger.terminal.get(jobId)
  if (before !== undefined && before !== job.status)
    throw new LostRecord(`job ${jobId} was ${before}, is ${job.status}`)
  if (TERMINAL.has(job.status)) ledger.terminal.set(jobId, job.status)
  return job
}

export const TERMINAL: ReadonlySet<string> = new Set(['succeeded', 'failed', 'canceled', 'expired'])

function smallWorkflow(random: SeededRandom): object {
  const side = random.between(8, 96)
  return {
    '1': {
      class_type: 'EmptyImage',
      inputs: { width: side, height: side, batch_size: 1, color: random.between(0, 1 << 24) },
    },
    '2': {
      class_type: 'ImageScale',
      inputs: { image: ['1', 0], upscale_method: 'bilinear', width: 64, height: 64, crop: 'disabled' },
    },
    '3': { class_type: 'SaveImage', inputs: { images: ['2', 0], filename_prefix: 'crash' } },
    '4': { class_type: 'PreviewAny', inputs: { source: 'a value' } },
  }
}

/**
 * Clients that use every operation until the server is killed. Only what was answered enters the ledger; a request without an
 * answer has an unknown outcome and is not recorded.
 */
import { randomUUID } from 'node:crypto'
import type { SeededRandom } from '../support/seeded-random.ts'
import { type Ledger, SECRET, sha256 } from './ledger.ts'

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
  const steps = [submit, submit, submit, upload, poll, cancel, remove]
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
  const hasSecret = random.next() < 0.1
  const response = await fetch(`${baseUrl}/api/v2/jobs`, {
    method: 'POST',
    headers: { 'idempotency-key': key },
    body: JSON.stringify({
      workflow: smallWorkflow(random),
      metadata: { label: key },
      extra_data: { extra_pnginfo: { workflow: { id: key } }, ...(hasSecret && { api_key_service_org: SECRET }) },
    }),
    signal,
  })
  const body = (await response.json()) as { id: string }
  if (response.status === 201) ledger.jobs.push({ id: body.id, key, label: key, hasSecret })
}

const upload: Step = async (baseUrl, ledger, random, signal) => {
  const key = randomUUID()
  // Small ones go another way than large ones; now and then one that is still on its way when the power goes.
  const maxBytes = random.next() < 0.1 ? 8_000_000 : 200_000
  const bytes = Buffer.alloc(random.between(1, maxBytes), random.between(0, 255))
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
  const { id } = random.pick(ledger.jobs)
  const response = await fetch(`${baseUrl}/api/v2/jobs/${id}/cancel`, { method: 'POST', signal })
  if (response.status !== 200) throw new LostRecord(`the cancel of job ${id} answers ${response.status}`)
  // What a cancel answers is acknowledged like what a read answers.
  noteTerminal(ledger, (await response.json()) as SeenJob)
}

const remove: Step = async (baseUrl, ledger, random, signal) => {
  if (ledger.assets.length === 0 || random.next() < 0.7) return
  const { id } = random.pick(ledger.assets)
  const wasRemoved = ledger.removed.get(id) === 'acknowledged'
  if (!wasRemoved) ledger.removed.set(id, 'asked')
  const response = await fetch(`${baseUrl}/api/v2/assets/${id}`, { method: 'DELETE', signal })
  if (response.status === 204 && wasRemoved) throw new LostRecord(`asset ${id} came back`)
  // 404 also when an earlier removal took hold and its answer was lost.
  if (response.status === 204 || response.status === 404) ledger.removed.set(id, 'acknowledged')
}

export interface SeenJob {
  readonly id: string
  readonly status: string
  readonly metadata: Readonly<Record<string, string>>
  readonly error: { readonly code: string } | null
  readonly outputs: readonly {
    readonly id: string
    readonly name: string
    readonly size_bytes: number
    readonly hash: string
  }[]
}

/** Reads a job that was acknowledged: it must be there, and a terminal state must stay what it was. */
export async function readJob(baseUrl: string, ledger: Ledger, jobId: string, signal?: AbortSignal): Promise<SeenJob> {
  const response = await fetch(`${baseUrl}/api/v2/jobs/${jobId}`, { signal })
  if (response.status !== 200) throw new LostRecord(`job ${jobId} answers ${response.status}`)
  const job = (await response.json()) as SeenJob
  noteTerminal(ledger, job)
  return job
}

function noteTerminal(ledger: Ledger, job: SeenJob): void {
  const before = ledger.terminal.get(job.id)
  const now = `${job.status} with outputs [${job.outputs.map(({ id, hash }) => `${id} ${hash}`).join(', ')}]`
  if (before !== undefined && before !== now) throw new LostRecord(`job ${job.id} was ${before}, is ${now}`)
  if (TERMINAL.has(job.status)) ledger.terminal.set(job.id, now)
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

/**
 * Ours and the official proxy over the same ComfyUI server, each as the process that its users start, in turns: reading a job, taking one,
 * a thousand of them to their ends, and a large upload. Both speak the same API, so one client measures both.
 */
import autocannon from 'autocannon'
import { finishedJob, submitJob } from '../kit/client-steps.ts'
import { forkServer } from '../kit/server-child.ts'
import { type Sent, toUpload } from '../kit/transfer.ts'
import { freshWorkflow, TRIVIAL_WORKFLOW, textWorkflow } from '../kit/workflows.ts'
import { findComfyUrl, findPeer } from './found-peers.ts'
import { holdStreams } from './held-streams.ts'
import { type PeerProcess, startPeer } from './peer-process.ts'

const ROUNDS = 5
const CONNECTIONS = 16
const SECONDS = 4
const JOBS = 1000
const UPLOAD_MIB = 1024
const WATCH_EVERY_MS = 50

export interface ServiceFigures {
  startedMs: number[]
  restingMib: number[]
  reads: number[]
  submits: number[]
  textJobs: number[]
  pictureJobs: number[]
  uploadMibPerSecond: number[]
  uploadAddedMib: number[]
  /** Only with the tests' ComfyUI server. */
  heldStreams: number[]
  streamsAddedMib: number[]
  /** The most while jobs are read and run. */
  busyMib: number[]
}

export async function measureJobServices(): Promise<ReadonlyMap<string, ServiceFigures>> {
  await using stack = new AsyncDisposableStack()
  const realUrl = findComfyUrl()
  const comfyUrl = realUrl ?? stack.use(await forkServer('bench/servers/fake-comfyui.ts')).url
  const sender = stack.use(await forkServer('bench/servers/upload-client.ts'))
  const figures = new Map<string, ServiceFigures>()
  for (let round = 0; round < ROUNDS; round++) {
    await measureOne('Atelier', startAtelier(comfyUrl))
    const proxy = findPeer('BENCH_COMFY_PROXY')
    if (proxy !== null) await measureOne('comfy-api-proxy', startProxy(proxy, comfyUrl))

    async function measureOne(name: string, starting: Promise<PeerProcess>): Promise<void> {
      await using service = await starting
      const kept = figures.get(name) ?? nothing()
      figures.set(name, kept)
      kept.startedMs.push(service.startedMs)
      kept.restingMib.push(service.rssBytes() / 2 ** 20)
      using busy = watchMemory(service)
      const { id } = await finishedJob(service.url)
      kept.reads.push(await measureRate(`${service.url}/api/v2/jobs/${id}`))
      kept.textJobs.push(await runJobs(service, round, textWorkflow))
      kept.pictureJobs.push(await runJobs(service, round, freshWorkflow))
      kept.busyMib.push(busy.mostBytes() / 2 ** 20)
      const { rate, addedMib } = await upload(service)
      kept.uploadMibPerSecond.push(rate)
      kept.uploadAddedMib.push(addedMib)
      if (realUrl === null) {
        const streams = await holdStreams(service)
        kept.heldStreams.push(streams.held)
        kept.streamsAddedMib.push(streams.addedMib)
      }
      // Last: what it takes faster than the engine runs is left behind.
      const body = JSON.stringify({ workflow: TRIVIAL_WORKFLOW })
      kept.submits.push(await measureRate(`${service.url}/api/v2/jobs`, body))
    }

    async function upload(service: PeerProcess): Promise<{ rate: number; addedMib: number }> {
      const before = service.rssBytes()
      using memory = watchMemory(service)
      const sent = await sender.ask<Sent>('upload', toUpload(service, round, UPLOAD_MIB))
      if (sent.status >= 300) throw new Error(`the upload was answered with ${sent.status}: ${sent.body}`)
      return { rate: UPLOAD_MIB / (sent.millis / 1000), addedMib: (memory.mostBytes() - before) / 2 ** 20 }
    }
  }
  return figures
}

/** As `npm start` does it after the set-up. */
export function startAtelier(comfyUrl: string | null, dataDir?: string): Promise<PeerProcess> {
  const main = `${process.cwd()}/scripts/start.js`
  return startPeer({
    ...{ name: 'Atelier', command: process.execPath, probe: '/health' },
    toArguments: (port, folder) => [
      ...['--v8-pool-size=0', '--disable-sigusr1', main, 'serve', '--port', String(port), '--max-queue', '1000000'],
      ...['--data-dir', dataDir ?? `${folder}/data`],
      ...(comfyUrl === null ? [] : ['--comfyui', comfyUrl]),
    ],
  })
}

function startProxy(command: string, comfyUrl: string): Promise<PeerProcess> {
  return startPeer({
    ...{ name: 'comfy-api-proxy', command, probe: '/health' },
    toArguments: (port, folder) => [
      ...['run', '--comfyui', comfyUrl, '--host', '127.0.0.1', '--port', String(port)],
      ...['--state-dir', `${folder}/state`, '--max-upload-mb', String(2 * UPLOAD_MIB)],
    ],
  })
}

/** Looks at the memory of a process again and again. */
function watchMemory(service: PeerProcess): Disposable & { mostBytes(): number } {
  let most = service.rssBytes()
  const watch = setInterval(() => {
    most = Math.max(most, service.rssBytes())
  }, WATCH_EVERY_MS)
  return { mostBytes: () => most, [Symbol.dispose]: () => clearInterval(watch) }
}

/** Answered requests a second; with a body they are POSTs. */
async function measureRate(url: string, body?: string): Promise<number> {
  const sent = body === undefined ? {} : ({ method: 'POST', body } as const)
  const headers = { 'content-type': 'application/json' }
  const result = await autocannon({ url, connections: CONNECTIONS, duration: SECONDS, headers, ...sent })
  if (result.non2xx > 0 || result.errors > 0)
    throw new Error(`${url}: ${result.non2xx} refused, ${result.errors} broken`)
  return result.requests.total / result.duration
}

/** Seconds until all of them have ended; they are sent over a few connections, as a client would. */
async function runJobs(
  { name, url }: PeerProcess,
  round: number,
  toWorkflow: (index: number) => object,
): Promise<number> {
  const startedAt = performance.now()
  const ids: string[] = []
  let next = 0
  const send = async () => {
    while (next < JOBS) ids.push((await submitJob(url, toWorkflow(round * JOBS + next++))).id)
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, send))
  for (const id of ids) await untilEnded(url, id, name === 'Atelier' ? 0 : MAX_EXPIRED)
  return (performance.now() - startedAt) / 1000
}

const WAIT_MS = 5
// The proxy asks its server for the queue and for the history; a job that moves from one to the other meanwhile is "expired" for a moment.
const MAX_EXPIRED = 20

async function untilEnded(url: string, id: string, maxExpired: number): Promise<void> {
  for (let expired = 0; ; ) {
    const response = await fetch(`${url}/api/v2/jobs/${id}`)
    const { status } = (await response.json()) as { status: string }
    if (status === 'succeeded') return
    if (status === 'expired') expired += 1
    if (status === 'failed' || status === 'canceled' || expired > maxExpired) throw new Error(`a job ended ${status}`)
    await new Promise((resolve) => setTimeout(resolve, WAIT_MS))
  }
}

function nothing(): ServiceFigures {
  return {
    ...{ startedMs: [], restingMib: [], reads: [], submits: [], textJobs: [], pictureJobs: [] },
    ...{ uploadMibPerSecond: [], uploadAddedMib: [], heldStreams: [], streamsAddedMib: [], busyMib: [] },
  }
}

/**
 * A stub server of the Jobs API v2 with one job and named faults, for testing clients: it does what a real server does only when
 * something goes wrong. It validates nothing; the real service is tested elsewhere.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface StubScenario {
  /** Frames for the first connection to the event stream, the second, and so on; each then closes. Absent: the stream is refused. */
  readonly streams?: readonly (readonly (readonly [name: string, data: object])[])[]
  /** Answers of GET job, one after the other; the last one repeats. */
  readonly jobs: readonly Readonly<Record<string, unknown>>[]
  /** Answers of submit that come before the 201: status, body, headers. */
  readonly refusals?: readonly (readonly [status: number, body: object, headers?: Record<string, string>])[]
  /** The event stream stays open and silent after its frames. */
  readonly holdStreams?: boolean
}

export interface SeenRequest {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

export interface StubServer extends AsyncDisposable {
  readonly url: string
  readonly seen: readonly SeenRequest[]
  /** From now on GET job answers this. */
  setJob(job: Readonly<Record<string, unknown>>): void
}

export const STUB_JOB_ID = '0199b3f4-1d2e-7a3b-8c4d-5e6f70819234'

export function stubJob(status: string, more: object = {}): Record<string, unknown> {
  const self = `/api/v2/jobs/${STUB_JOB_ID}`
  const urls = { self, events: `${self}/events`, cancel: `${self}/cancel`, logs: `${self}/logs` }
  return { id: STUB_JOB_ID, status, queue_position: null, progress: null, outputs: [], error: null, urls, ...more }
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('latin1')
}

function answer(response: ServerResponse, status: number, body: object, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(JSON.stringify(body))
}

export async function startStubServer(scenario: StubScenario): Promise<StubServer> {
  const seen: SeenRequest[] = []
  const jobs = [...scenario.jobs]
  const refusals = [...(scenario.refusals ?? [])]
  const streams = [...(scenario.streams ?? [])]
  let url = ''

  function nextJob(): Readonly<Record<string, unknown>> {
    return jobs.length > 1 ? (jobs.shift() ?? {}) : (jobs[0] ?? {})
  }

  function sendStream(response: ServerResponse): void {
    const frames = streams.shift()
    if (frames === undefined) {
      answer(response, 501, { error: { code: 'not_implemented', message: 'no stream' } })
      return
    }
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    for (const [name, data] of frames) response.write(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`)
    if (!scenario.holdStreams) response.end()
  }

  function submit(response: ServerResponse): void {
    const refusal = refusals.shift()
    if (refusal === undefined) answer(response, 201, stubJob('queued', { queue_position: 1 }))
    else answer(response, ...refusal)
  }

  const server = createServer(async (request, response) => {
    const path = request.url ?? ''
    seen.push({ method: request.method ?? '', url: path, headers: request.headers, body: await readBody(request) })
    if (path === '/api/v2/jobs') submit(response)
    else if (path === '/api/v2/assets') answer(response, 201, { id: 'a5e7-id', hash: 'blake3:00' })
    else if (path.startsWith('/api/v2/assets/')) response.writeHead(200).end('bytes')
    else if (path.endsWith('/events')) sendStream(response)
    else if (path.endsWith('/cancel')) {
      jobs.splice(0, jobs.length, stubJob('canceled'))
      answer(response, 200, stubJob('canceling'))
    } else answer(response, 200, nextJob())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    seen,
    setJob(job) {
      jobs.splice(0, jobs.length, job)
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

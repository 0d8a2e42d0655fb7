/** Health of a joined worker: whether the process lives, whether its service accepts it, and its metrics. Nothing else is served. */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Metrics } from '../compose/metrics/open-metrics.ts'
import type { JoinConfig } from '../config/join-config.ts'

interface HealthSources {
  /** Whether jobs can be taken. */
  isReady(): boolean
  /** null: there are none yet. */
  metrics(): Pick<Metrics, 'contentType' | 'render'> | null
}

interface JoinedHealth extends AsyncDisposable {
  readonly url: string
}

const TIMEOUT_MS = 10_000

/** Throws where the address is taken. */
export async function openJoinedHealth(
  { host, port }: NonNullable<JoinConfig['health']>,
  { isReady, metrics }: HealthSources,
): Promise<JoinedHealth> {
  const server = createServer({ requestTimeout: TIMEOUT_MS, maxHeaderSize: 8192 }, ({ method, url = '' }, response) => {
    const answer = (status: number, said: object) =>
      response.writeHead(status, { 'content-type': 'application/json', connection: 'close' }).end(JSON.stringify(said))
    if (method !== 'GET' && method !== 'HEAD') return answer(405, { status: 'refused' })
    if (url === '/healthz') return answer(200, { status: 'alive' })
    if (url === '/metrics') return sendMetrics(response, metrics())
    if (url !== '/readyz') return answer(404, { status: 'unknown' })
    return isReady() ? answer(200, { status: 'ready' }) : answer(503, { status: 'not_ready' })
  })
  server.maxConnections = 100
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  const { address, port: bound, family } = server.address() as AddressInfo
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${bound}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** They name no account, so whoever reaches the port may read them. */
async function sendMetrics(response: ServerResponse, metrics: ReturnType<HealthSources['metrics']>): Promise<void> {
  const text = await metrics?.render().catch(() => undefined)
  if (metrics === null || text === undefined) response.writeHead(503, { connection: 'close' }).end()
  else response.writeHead(200, { 'content-type': metrics.contentType, connection: 'close' }).end(text)
}

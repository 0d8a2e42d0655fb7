/** The listener of a process without APIs: health, readiness and metrics, and nothing else. */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Metrics } from '../compose/metrics/open-metrics.ts'
import type { Config } from '../config/config.ts'
import type { JoinConfig } from '../config/join-config.ts'
import { createAnswerError } from '../surfaces/jobs-v2/jobs-errors.ts'
import { createGate } from '../surfaces/kit/guards/gate.ts'
import { createStaticTokenGuard, type OperatorGuard } from '../surfaces/kit/guards/operator-guard.ts'
import type { SurfaceGauge } from '../surfaces/kit/surface.ts'
import { createOperatorSurface } from '../surfaces/operator/index.ts'
import { openServer } from '../surfaces/server.ts'
import type { HttpParts } from './http-parts.ts'

/** Health of a joined worker: whether the process lives, whether its service accepts it, and its metrics. Nothing else is served. */
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

type HealthParts = Pick<HttpParts, 'secrets' | 'authenticate' | 'shared' | 'readiness' | 'metrics' | 'log'>

export async function openHealthOnly(config: Config, parts: HealthParts) {
  const { secrets, authenticate, shared, readiness, metrics, log } = parts
  const { http } = config
  const gate = createGate({
    brands: http.brand,
    bindHost: http.host,
    hasCredentials: shared !== null || secrets.token !== null,
    authenticate,
    allowedHosts: http.allowedHosts,
    corsOrigins: [],
    publicUrl: null,
    mountPrefix: '',
    trustedProxies: http.trustedProxies,
  })
  /**
   * These are figures of this process alone, which name no account. A worker should not hold the token that may do everything only to keep
   * them from those who reach its port.
   */
  function toMetricsGuard(): OperatorGuard {
    if (shared === null) return async (request) => void (await gate.authenticate(request, 'bearer'))
    return secrets.adminToken === null ? () => {} : createStaticTokenGuard(secrets.adminToken.reveal())
  }
  const operator = createOperatorSurface({
    guardMetrics: toMetricsGuard(),
    role: config.role,
    readiness,
    metrics,
  })
  const server = await openServer({
    host: http.host,
    port: http.port,
    gate,
    surfaces: [operator],
    answerError: createAnswerError(log),
    onAnswered: config.log.requests ? (request) => log.info(request, 'answered') : null,
  })
  const gauges: readonly SurfaceGauge[] = []
  return { ...server, frontendUrl: null, frontendRoutes: [], hasConsole: false, openStreams: () => 0, gauges }
}

/** The listener of a process without APIs: health, readiness and metrics, and nothing else. */
import type { Config } from './config/config.ts'
import type { HttpParts } from './http-parts.ts'
import { createAnswerError } from './surfaces/jobs-v2/jobs-errors.ts'
import { createStaticTokenGuard } from './surfaces/kit/guards/credentials.ts'
import { createGate } from './surfaces/kit/guards/gate.ts'
import type { SurfaceGauge } from './surfaces/kit/surface.ts'
import { createOperatorSurface } from './surfaces/operator/index.ts'
import { openServer } from './surfaces/server.ts'

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
  const operator = createOperatorSurface({
    guardMetrics:
      shared === null
        ? (request) => gate.authenticate(request, 'bearer')
        : createStaticTokenGuard(secrets.adminToken?.reveal() ?? null),
    role: config.role,
    notReadyReason: readiness.notReadyReason,
    degraded: readiness.degraded,
    metrics: async () => ({ contentType: metrics.contentType, text: await metrics.render() }),
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
  return { ...server, frontendUrl: null, hasConsole: false, openStreams: () => 0, gauges }
}

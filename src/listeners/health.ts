/** The listener of a process without APIs: health, readiness and metrics, and nothing else. */
import type { Config } from '../config/config.ts'
import { createAnswerError } from '../surfaces/jobs-v2/jobs-errors.ts'
import { createGate } from '../surfaces/kit/guards/gate.ts'
import { createStaticTokenGuard, type OperatorGuard } from '../surfaces/kit/guards/operator-guard.ts'
import type { SurfaceGauge } from '../surfaces/kit/surface.ts'
import { createOperatorSurface } from '../surfaces/operator/index.ts'
import { openServer } from '../surfaces/server.ts'
import type { HttpParts } from './http-parts.ts'

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

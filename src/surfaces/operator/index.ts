/**
 * For operators: liveness (the process answers), readiness (it can do its work) and metrics. The first two
 * need no token, since probes have none; metrics cover all accounts and are guarded. All are at the root,
 * outside any mount prefix.
 */
import type { IncomingMessage } from 'node:http'
import { createRouteGuard, needs } from '../kit/guards/routes.ts'
import type { Surface } from '../kit/surface.ts'

interface OperatorOptions {
  /** Throws, or rejects, unless this caller may see what everybody does. */
  readonly guardMetrics: (request: IncomingMessage) => unknown
  /** What this process does in its service, as probes are told. */
  readonly role: string
  readonly readiness: {
    /** null when ready, else a reason that is safe to show. */
    notReadyReason(): Promise<string | null>
    /** Parts that do not answer while the rest goes on. */
    degraded(): Promise<readonly string[]>
  }
  readonly metrics: {
    readonly contentType: string
    /** Prometheus text. */
    render(): Promise<string>
  }
}

const PATHS = ['/healthz', '/readyz', '/metrics']

export function createOperatorSurface({ guardMetrics, role, readiness, metrics }: OperatorOptions): Surface {
  return {
    name: 'operator',
    register(app) {
      createRouteGuard({ operator: ({ raw }) => guardMetrics(raw) }).protect(app)
      app.get('/healthz', needs('public'), () => ({ status: 'alive' }))
      app.get('/readyz', needs('public'), async (_request, reply) => {
        const reason = await readiness.notReadyReason()
        const isReady = reason === null
        const away = await readiness.degraded()
        return reply.code(isReady ? 200 : 503).send({
          status: isReady ? 'ready' : 'not_ready',
          reason,
          role,
          ...(away.length > 0 && { degraded: away }),
        })
      })
      app.get('/metrics', needs('operator'), async (_request, reply) => {
        return reply.header('content-type', metrics.contentType).send(await metrics.render())
      })
    },
    allowedMethods: (path) => (PATHS.includes(path) ? ['GET', 'HEAD'] : []),
  }
}

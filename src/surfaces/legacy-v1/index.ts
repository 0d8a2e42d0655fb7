/**
 * The Legacy v1 API as one surface: every route under `/api/x` and bare `/x`, and the WebSocket. It may be left out: deleting
 * this folder leaves a service without it. Jobs, assets and accounts are those of the other surfaces; only the words differ.
 */
import type { SurfaceParts } from '../kit/surface-parts.ts'
import type { Surface } from '../kit/surface.ts'

export function createSurface(parts: SurfaceParts): Surface {
  const { gate } = parts
  return {
    name: 'legacy-v1',
    register(app) {
      app.get(`${gate.mountPrefix}/prompt`, async () => ({ exec_info: { queue_remaining: 0 } }))
    },
    hotRoutes: [],
    allowedMethods: () => [],
    drain() {},
  }
}

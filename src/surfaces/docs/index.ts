/** The reference page at /docs, and a way there from the root. Readable without a token: it holds nobody's data. */
import { createHash } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import type { Gate } from '../kit/gate.ts'
import { PUBLIC_PAGE, placeOf } from '../kit/guard-hooks.ts'
import type { Surface } from '../kit/surface.ts'
import type { DocumentNode } from './openapi-types.ts'
import { renderPage } from './render-page.ts'
import { STYLE } from './style.ts'

export interface DocsOptions {
  readonly gate: Pick<Gate, 'mountPrefix'>
  /** The OpenAPI document to show. */
  readonly document: object
}

// Only our own style, known by its digest; no script, no image, no frame, no form.
const STYLE_DIGEST = createHash('sha256').update(STYLE).digest('base64')
const POLICY = `default-src 'none'; style-src 'sha256-${STYLE_DIGEST}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`

export function createDocs({ gate, document }: DocsOptions): Surface {
  function register(app: FastifyInstance): void {
    app.get('/docs', { config: PUBLIC_PAGE }, (request, reply) => {
      const { origin, mountPrefix } = placeOf(request)
      return reply
        .header('Content-Security-Policy', POLICY)
        .header('Content-Type', 'text/html; charset=utf-8')
        .send(renderPage(document as DocumentNode, { baseUrl: origin + mountPrefix }))
    })
    app.get('/', { config: PUBLIC_PAGE }, (request, reply) => reply.redirect(`${placeOf(request).mountPrefix}/docs`))
  }
  const paths = [`${gate.mountPrefix}/docs`, `${gate.mountPrefix}/`, gate.mountPrefix]
  return {
    name: 'docs',
    register(app) {
      app.register(
        (mounted, _options, done) => {
          register(mounted)
          done()
        },
        { prefix: gate.mountPrefix },
      )
    },
    hotRoutes: [],
    allowedMethods: (path) => (paths.includes(path) ? ['GET', 'HEAD'] : []),
    drain() {},
  }
}

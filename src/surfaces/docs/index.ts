/** The reference pages below /docs, and a way there from the root. Readable without a token: they hold nobody's data. */
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
  /** The contract of the jobs, where the root leads. */
  readonly document: object
  readonly others?: readonly DocsPage[]
}

export interface DocsPage {
  /** `/docs` or below it. */
  readonly path: string
  readonly title: string
  /** The OpenAPI document to show. */
  readonly document: object
  /** Where it is served, below the mount. */
  readonly documentPath: string
  /** A first thing to try, below the mount. */
  readonly examplePath: string
}

// Only our own style, known by its digest; no script, no image, no frame, no form.
const STYLE_DIGEST = createHash('sha256').update(STYLE).digest('base64')
const POLICY = `default-src 'none'; style-src 'sha256-${STYLE_DIGEST}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`

const JOBS_PAGE = {
  path: '/docs',
  title: 'Jobs API v2',
  documentPath: '/api/v2/openapi.json',
  examplePath: '/api/v2/health',
}

export function createDocs({ gate, document, others = [] }: DocsOptions): Surface {
  const pages: readonly DocsPage[] = [{ ...JOBS_PAGE, document }, ...others]

  function register(app: FastifyInstance): void {
    for (const page of pages) {
      const rest = pages.filter((other) => other !== page)
      app.get(page.path, { config: PUBLIC_PAGE }, (request, reply) => {
        const { origin, mountPrefix } = placeOf(request)
        return reply
          .header('Content-Security-Policy', POLICY)
          .header('Content-Type', 'text/html; charset=utf-8')
          .send(renderPage(page.document as DocumentNode, { ...page, baseUrl: origin + mountPrefix, others: rest }))
      })
    }
    app.get('/', { config: PUBLIC_PAGE }, (request, reply) =>
      reply.redirect(`${placeOf(request).mountPrefix}${pages[0].path}`),
    )
  }
  const paths = [...pages.map(({ path }) => gate.mountPrefix + path), `${gate.mountPrefix}/`, gate.mountPrefix]
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

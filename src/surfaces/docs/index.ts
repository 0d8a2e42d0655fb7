/**
 * The reference pages below /docs, one for each API, and a redirect to them from the root. Each page has its document for
 * machines beside it. They need no token, since they hold nobody's data.
 */
import type { FastifyInstance } from 'fastify'
import { type DocumentNode, sendPage } from '../kit/docs-page.ts'
import type { Gate, ServiceAddress } from '../kit/guards/gate.ts'
import { PUBLIC_PAGE, serviceAddressOf } from '../kit/guards/routes.ts'
import { mount, type Reference, type Surface } from '../kit/surface.ts'

interface DocsOptions {
  readonly gate: Pick<Gate, 'mountPrefix'>
  /** The contract of the jobs, where the root leads. */
  readonly document: object
  readonly others?: readonly Reference[]
  /** Where the root leads instead; null: to the reference. */
  readonly home?: () => string | null
}

/** Behind the path of a page: its document for machines. */
const DOCUMENT = '/openapi.json'

const JOBS_PAGE = {
  path: '/docs',
  title: 'Jobs API v2',
  examplePath: '/api/v2/health',
}

export function createDocs({ gate, document, others = [], home = () => null }: DocsOptions): Surface {
  const pages: readonly Reference[] = [{ ...JOBS_PAGE, document }, ...others]

  function register(app: FastifyInstance): void {
    for (const page of pages) {
      const rest = pages.filter((other) => other !== page)
      const apiOf = ({ origin, mountPrefix }: ServiceAddress) =>
        page.isAtRoot === true ? origin : origin + mountPrefix
      app.get(page.path, PUBLIC_PAGE, (request, reply) => {
        const address = serviceAddressOf(request)
        const docsUrl = address.origin + address.mountPrefix
        return sendPage(reply, page.document as DocumentNode, {
          documentUrl: docsUrl + page.path + DOCUMENT,
          exampleUrl: apiOf(address) + page.examplePath,
          others: rest.map(({ path, title }) => ({ url: docsUrl + path, title })),
        })
      })
      app.get(page.path + DOCUMENT, PUBLIC_PAGE, (request, reply) => {
        const text = JSON.stringify({ ...page.document, servers: [{ url: apiOf(serviceAddressOf(request)) }] })
        return reply.header('Content-Type', 'application/json').send(Buffer.from(text))
      })
    }
    app.get('/', PUBLIC_PAGE, (request, reply) =>
      reply.redirect(`${serviceAddressOf(request).mountPrefix}${home() ?? pages[0].path}`),
    )
  }
  const paths = [
    ...pages.flatMap(({ path }) => [gate.mountPrefix + path, gate.mountPrefix + path + DOCUMENT]),
    `${gate.mountPrefix}/`,
    gate.mountPrefix,
  ]
  return {
    name: 'docs',
    register: (app) => mount(app, gate.mountPrefix, register),
    allowedMethods: (path) => (paths.includes(path) ? ['GET', 'HEAD'] : []),
  }
}

/**
 * The reference pages below /docs, one for each API, and a redirect to them from the root. Each page has its document for
 * machines beside it, and all of them the client for Python. They need no token, since they hold nobody's data.
 */
import { readFile } from 'node:fs/promises'
import type { FastifyInstance } from 'fastify'
import { ServiceError } from '../../domain/errors.ts'
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
const PYTHON_CLIENT = '/docs/atelier_client.py'
const PYTHON_SOURCE = new URL('../../../client/dist/python/atelier_client.py', import.meta.url)

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
    app.get(PYTHON_CLIENT, PUBLIC_PAGE, async (_request, reply) => {
      const text = await readFile(PYTHON_SOURCE).catch(() => null)
      if (text === null) throw new ServiceError('not_found', 'the client was not built: run `npm run build:client`')
      return reply.header('Content-Type', 'text/x-python; charset=utf-8').send(text)
    })
    app.get('/', PUBLIC_PAGE, (request, reply) =>
      reply.redirect(`${serviceAddressOf(request).mountPrefix}${home() ?? pages[0].path}`),
    )
  }
  const paths = [
    gate.mountPrefix + PYTHON_CLIENT,
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

/**
 * The reference pages below /docs, one for each API, and a redirect to them from the root. Each page has its document for
 * machines beside it, and all of them the client for Python. They need no token, since they hold nobody's data.
 */
import { readFile } from 'node:fs/promises'
import type { FastifyInstance } from 'fastify'
import { type Document, type Operation, readOperations } from '../../../lib/openapi/operations.ts'
import { JSON_TEXT, toLiteral } from '../../../lib/openapi/sample-text.ts'
import { ServiceError } from '../../domain/errors.ts'
import { type DocumentNode, type ShownOperation, sendPage } from '../kit/docs/docs-page.ts'
import type { Gate, ServiceAddress } from '../kit/guards/gate.ts'
import { PUBLIC_PAGE, serviceAddressOf } from '../kit/guards/routes.ts'
import { mount, type Reference, type Surface } from '../kit/surface.ts'
import { type SampledApi, toSamples } from './samples.ts'

interface DocsOptions {
  readonly gate: Pick<Gate, 'mountPrefix'>
  /** The contract of the jobs, where the root leads. */
  document(): object
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
  client: 'atelier/client',
}

export function createDocs({ gate, document, others = [], home = () => null }: DocsOptions): Surface {
  const pages: readonly Reference[] = [{ ...JOBS_PAGE, document }, ...others]

  function register(app: FastifyInstance): void {
    for (const page of pages) {
      const rest = pages.filter((other) => other !== page)
      const apiOf = ({ origin, mountPrefix }: ServiceAddress) =>
        page.isAtRoot === true ? origin : origin + mountPrefix
      const describe = describeOnce(page)
      app.get(page.path, PUBLIC_PAGE, (request, reply) => {
        const address = serviceAddressOf(request)
        const docsUrl = address.origin + address.mountPrefix
        const { document, more } = describe(apiOf(address), docsUrl)
        return sendPage(reply, document, {
          documentUrl: docsUrl + page.path + DOCUMENT,
          exampleUrl: apiOf(address) + page.examplePath,
          others: rest.map(({ path, title }) => ({ url: docsUrl + path, title })),
          more,
          // Whoever is at another machine has a console, and a token that belongs into no page.
          isTryable: isLoopback(address.origin),
        })
      })
      app.get(page.path + DOCUMENT, PUBLIC_PAGE, (request, reply) => {
        const text = JSON.stringify({ ...page.document(), servers: [{ url: apiOf(serviceAddressOf(request)) }] })
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

interface Described {
  readonly document: DocumentNode
  readonly more: ReadonlyMap<string, ShownOperation>
}

/** Read at the first visit: a service that nobody reads about needs none of it. */
function describeOnce({ document: read, client }: Reference): (baseUrl: string, docsUrl: string) => Described {
  let known: { readonly document: object; readonly operations: readonly Operation[] } | null = null
  return (baseUrl, docsUrl) => {
    if (known === null) {
      const document = read()
      known = { document, operations: readOperations(document as Document) }
    }
    const { security = [] } = known.document as { readonly security?: readonly object[] }
    const api = {
      ...{ baseUrl, door: client ?? null, pythonUrl: docsUrl + PYTHON_CLIENT },
      needsCredentials: security.length > 0,
    }
    return {
      document: known.document as DocumentNode,
      more: new Map(known.operations.map((operation) => [operation.name, toShown(operation, api)])),
    }
  }
}

function toShown(operation: Operation, api: SampledApi): ShownOperation {
  const { method, path, arguments: args, body, answer } = operation
  // A map takes several parts of an address.
  const asked = args.filter(({ schema }) => schema.type !== 'object')
  const named = (place: string) => asked.filter((each) => each.in === place)
  const isText = body !== null && /json|text/.test(body.types[0])
  return {
    samples: toSamples(operation, api),
    answer: answer === null ? null : `${answer.status}\n${toText(answer.example)}`,
    request: JSON.stringify({
      ...{ method, path, base: api.baseUrl, needsToken: api.needsCredentials },
      arguments: asked.map(({ name, example }) => ({ name, value: toText(example ?? '') })),
      query: named('query').map(({ name }) => name),
      headers: Object.fromEntries(named('header').map(({ name, wire }) => [name, wire])),
      body: isText ? toText(body.example ?? '') : null,
      bodyType: body?.types[0] ?? '',
    }),
  }
}

const toText = (value: unknown) => (typeof value === 'string' ? value : toLiteral(value, JSON_TEXT))

function isLoopback(origin: string): boolean {
  const { hostname } = new URL(origin)
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname)
}

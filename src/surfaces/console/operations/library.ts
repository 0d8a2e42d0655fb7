/** What a person works with: node classes, uploads, and forms that they saved. */
import { hash } from 'node:crypto'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import { isJsonObject, type JsonValue, stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'
import { DEFAULT_POOL } from '../../../domain/deployments/deployment.ts'
import type { ListedEngine } from '../../../domain/engine/directory/engine-directory.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { readJsonBody } from '../../kit/bodies/json-body.ts'
import { matchesEtag, quoteDigest } from '../../kit/content/send-content.ts'
import { createTimeCursors } from '../../kit/cursor.ts'
import { needs, serviceAddressOf } from '../../kit/guards/routes.ts'
import { readFields, readLimit } from '../../kit/jobs/job-pages.ts'
import { toContentPath } from '../../kit/jobs/job-view.ts'
import { sendJson } from '../../kit/request.ts'
import { CONSOLE_API, type ConsoleDeps } from '../console-operation.ts'

/** The catalog is large and seldom changes: it is serialised once, and a caller that already has it gets 304. */
export function listNodes(app: FastifyInstance, { catalog }: ConsoleDeps): void {
  let written: { readonly of: NodeCatalog; readonly text: string; readonly etag: string } | null = null
  app.get(`${CONSOLE_API}/nodes`, needs('jobs:read'), (request, reply) => {
    const current = catalog()
    if (written?.of !== current) written = write(current)
    const { text, etag } = written
    reply.headers({ etag, 'cache-control': 'private, no-cache' })
    if (matchesEtag(request.headers['if-none-match'], etag)) return reply.code(304).send()
    return sendJson(reply, 200, text)
  })
}

function write(of: NodeCatalog) {
  const classes = Object.fromEntries(
    of.classTypes().flatMap((classType) => {
      const definition = of.find(classType)
      if (definition === null) return []
      const { input, input_order, output, output_name, display_name, category, output_node } = definition
      return [[classType, { input, input_order, output, output_name, display_name, category, output_node }]]
    }),
  )
  // Bounds of seeds are longer than a double.
  const text = stringifyLosslessJson({ classes } as unknown as JsonValue)
  return { of, text, etag: quoteDigest(hash('sha256', text, 'hex').slice(0, 32)) }
}

const MAX_ASSETS = 500
// A query of the store looks at this many files of an account at most.
const MAX_LISTED = 20_000

/** The cursor counts the entries of the pages before. An upload in between can make an entry appear twice, never hide one. */
export function listAssets(app: FastifyInstance, { callerOf, assets, console: parts }: ConsoleDeps): void {
  const cursors = createTimeCursors(parts.cursorSecret)
  app.get(`${CONSOLE_API}/assets`, needs('assets:read'), async (request, reply) => {
    const { accountId } = callerOf(request)
    const { mountPrefix } = serviceAddressOf(request)
    const fields = readFields(request.raw.url ?? '')
    const limit = readLimit(fields, MAX_ASSETS)
    const [cursor, name] = [fields.get('cursor'), JSON.stringify(['assets', accountId])]
    const passed = cursor === undefined ? 0 : Number(cursors.read(cursor, name).id)
    const found = await assets.list(accountId, 'input', Math.min(MAX_LISTED, passed + limit + 1))
    const page = found.slice(passed, passed + limit)
    const last = page.at(-1)
    const hasMore = found.length > passed + limit && last !== undefined
    const views = page.map(({ id, filePath, contentType, sizeBytes, hash: digest, createdAt, expiresAt }) => ({
      ...{ asset_id: id, name: filePath ?? id, content_type: contentType, size_bytes: sizeBytes },
      hash: `blake3:${digest}`,
      created_at: createdAt.toISOString(),
      expires_at: expiresAt?.toISOString() ?? null,
      url: toContentPath(mountPrefix, id),
    }))
    const next = hasMore ? cursors.encode({ createdAt: last.createdAt, id: String(passed + limit) }, name) : null
    return sendJson(reply, 200, { assets: views, next_cursor: next })
  })
}

// Among the account's own files, where other clients can read them too.
const FOLDER = 'console/forms/'
const ENDING = '.json'
const MAX_FORM_BYTES = 4 * 1024 * 1024
const NAME = /^[\p{L}\p{N}][\p{L}\p{N} ._()-]{0,79}$/u

function formNameOf(request: FastifyRequest): string {
  const { name } = request.params as { readonly name: string }
  if (!NAME.test(name) || name.includes('..'))
    throw new ServiceError(
      'invalid_request',
      'a form is named by letters, digits, spaces and . _ ( ) -, at most 80 of them',
    )
  return name
}

function toPath(name: string): string {
  return `${FOLDER}${name}${ENDING}`
}

export function listForms(app: FastifyInstance, { callerOf, userFiles }: ConsoleDeps): void {
  app.get(`${CONSOLE_API}/forms`, needs('jobs:read'), async (request, reply) => {
    const files = await userFiles.list(callerOf(request).accountId)
    const forms = files
      .filter(({ path }) => path.startsWith(FOLDER) && path.endsWith(ENDING))
      .map(({ path, sizeBytes, modifiedAt }) => ({
        name: path.slice(FOLDER.length, -ENDING.length),
        size_bytes: sizeBytes,
        modified_at: modifiedAt.toISOString(),
      }))
    return sendJson(reply, 200, { forms })
  })
}

export function getForm(app: FastifyInstance, { callerOf, userFiles }: ConsoleDeps): void {
  app.get(`${CONSOLE_API}/forms/:name`, needs('jobs:read'), async (request, reply) => {
    const bytes = await userFiles.read(callerOf(request).accountId, toPath(formNameOf(request)))
    if (bytes === null) throw noSuchForm()
    return sendJson(reply, 200, Buffer.from(bytes))
  })
}

/** The form is kept as it is sent, every number with its digits. */
export function putForm(app: FastifyInstance, { callerOf, userFiles }: ConsoleDeps): void {
  app.put(`${CONSOLE_API}/forms/:name`, needs('jobs:write'), async (request, reply) => {
    const name = formNameOf(request)
    const form = await readJsonBody(request, { maxBytes: MAX_FORM_BYTES })
    if (!isJsonObject(form)) throw new ServiceError('invalid_request', 'a form must be a JSON object')
    const bytes = Buffer.from(stringifyLosslessJson(form))
    const put = await userFiles.put(callerOf(request).accountId, toPath(name), { bytes, overwrite: true })
    if (put.outcome !== 'stored') throw new ServiceError('storage_full', 'there is no room for another form')
    return reply.code(204).send()
  })
}

export function deleteForm(app: FastifyInstance, { callerOf, userFiles }: ConsoleDeps): void {
  app.delete(`${CONSOLE_API}/forms/:name`, needs('jobs:write'), async (request, reply) => {
    if (!(await userFiles.remove(callerOf(request).accountId, toPath(formNameOf(request))))) throw noSuchForm()
    return reply.code(204).send()
  })
}

function noSuchForm(): ServiceError {
  return new ServiceError('not_found', 'there is no form of this name')
}

/** Figures alone: which engines there are is the operator's business. */
export function getEngines(app: FastifyInstance, { console: parts }: ConsoleDeps): void {
  app.get(`${CONSOLE_API}/engines`, needs('jobs:read'), (_request, reply) => {
    const engines = parts.engines(DEFAULT_POOL).filter(({ state }) => state !== 'standby')
    const taking = engines.filter(({ state }) => state === 'ready')
    const starting = engines.filter(({ state }) => state === 'starting').length
    const busy = taking.filter(({ running, concurrency }) => running >= concurrency).length
    return sendJson(reply, 200, {
      ...{ ready: taking.length - busy, busy, starting, away: engines.length - taking.length - starting },
      running: sum(engines, ({ running }) => running),
      // What still runs on an engine that takes no more is in use, too: never more are in use than there are.
      slots: sum(engines, ({ state, running, concurrency }) => (state === 'ready' ? concurrency : running)),
    })
  })
}

function sum(engines: readonly ListedEngine[], of: (engine: ListedEngine) => number): number {
  return engines.reduce((total, engine) => total + of(engine), 0)
}

/** The contract, with the address at which this caller reached us. */
export function getOpenapi(app: FastifyInstance, { specFor }: ConsoleDeps): void {
  app.get(`${CONSOLE_API}/openapi.json`, needs('any_scope'), (request, reply) => {
    const { origin, mountPrefix } = serviceAddressOf(request)
    return sendJson(reply, 200, specFor(origin + mountPrefix))
  })
}

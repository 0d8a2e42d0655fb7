/**
 * Saved workflows as clients of the hosted v1 know them, with an id each. They are the user files below `workflows/`, so ComfyUI's editor
 * shows the same ones. The id follows from the path: a file that is renamed has another one.
 */
import { hash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { isJsonObject, parseLosslessJson, stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'
import { hasAtMost } from '../../../../lib/text/cut-text.ts'
import { readUserPath, USER_FILE_MAX_BYTES, type UserFileInfo } from '../../../domain/accounts/user-files.ts'
import { ServiceError } from '../../../domain/errors.ts'
import {
  type Api,
  type OperationDeps,
  paramOf,
  queryOf,
  readInteger,
  readLooseObject,
  sendJson,
  sendJsonText,
} from '../legacy-operation.ts'

const FOLDER = 'workflows/'
const ENDING = '.json'
// Beside the workflows and not among them: the editor lists every file of their folder.
const DESCRIPTIONS = 'workflow-descriptions/'
const DESCRIPTION_ENDING = '.txt'
const MAX_DESCRIPTION = 4000
const MAX_NAME = 100
// Of a folder or a file: hidden ones are the editor's own, and a space there cannot be seen.
const HIDDEN = /(^|\/)[\s.]/
const MAX_LISTED = 100
const USUAL_LISTED = 20
// Of one name: "portrait", "portrait (2)" and so on.
const MAX_NAMESAKES = 100

export function savedWorkflows(api: Api, { userFiles, accountOf }: OperationDeps): void {
  async function listAll(accountId: string): Promise<SavedWorkflow[]> {
    return (await userFiles.list(accountId)).flatMap(toSaved)
  }

  async function find(request: FastifyRequest): Promise<SavedWorkflow> {
    const id = paramOf(request, 'id')
    const found = (await listAll(accountOf(request))).find((each) => each.id === id)
    if (found === undefined) throw noWorkflow()
    return found
  }

  async function toView(accountId: string, { id, name, file }: SavedWorkflow) {
    const description = await userFiles.read(accountId, descriptionOf(name))
    return {
      id,
      name,
      description: description === null ? null : Buffer.from(description).toString('utf8'),
      default_view: null,
      latest_version: 1,
      created_at: file.createdAt.toISOString(),
      updated_at: file.modifiedAt.toISOString(),
    }
  }

  /** Under a name of its own: a save never replaces what is there. */
  async function put(accountId: string, name: string, bytes: Uint8Array): Promise<SavedWorkflow> {
    for (let count = 1; count <= MAX_NAMESAKES; count++) {
      const path = `${FOLDER}${name}${count === 1 ? '' : ` (${count})`}${ENDING}`
      const put = await userFiles.put(accountId, path, { bytes, overwrite: false })
      if (put.outcome === 'no_room') throw new ServiceError('payload_too_large', 'there is no room for more files')
      const [saved] = put.outcome === 'stored' ? toSaved(put.file) : []
      if (saved !== undefined) return saved
    }
    throw invalid(`name stands for ${MAX_NAMESAKES} workflows already; choose another one`)
  }

  api.apiOnly('GET', '/workflows', 'assets:read', async (request, reply) => {
    const accountId = accountOf(request)
    const { limit, offset, compare, part } = readListing(queryOf(request))
    const all = (await listAll(accountId)).filter(({ name }) => name.toLowerCase().includes(part)).sort(compare)
    const shown = all.slice(offset, offset + limit)
    const data = await Promise.all(shown.map((each) => toView(accountId, each)))
    return sendJson(reply, { data, total: all.length, has_more: offset + shown.length < all.length })
  })

  api.apiOnly('GET', '/workflows/:id/content', 'assets:read', async (request, reply) => {
    const { id, file } = await find(request)
    const bytes = await userFiles.read(accountOf(request), file.path)
    if (bytes === null) throw noWorkflow()
    return sendJsonText(reply, `{"id":"${id}","version":1,"workflow_json":${toJsonText(bytes)}}`)
  })

  api.apiOnly('POST', '/workflows', 'assets:write', async (request, reply) => {
    const accountId = accountOf(request)
    const body = await readLooseObject(request, USER_FILE_MAX_BYTES)
    const { name, workflow_json: workflow, description = null } = body
    if (!isName(name)) throw invalid(`name must be the name of a file, with at most ${MAX_NAME} characters`)
    if (!isJsonObject(workflow)) throw invalid('workflow_json must be an object')
    if (description !== null && !(typeof description === 'string' && hasAtMost(description, MAX_DESCRIPTION)))
      throw invalid(`description must be a text of at most ${MAX_DESCRIPTION} characters`)
    const saved = await put(accountId, name, Buffer.from(stringifyLosslessJson(workflow)))
    const place = descriptionOf(saved.name)
    // One that was left by a file of this name is replaced or goes.
    if (description === null || description === '') await userFiles.remove(accountId, place)
    else await userFiles.put(accountId, place, { bytes: Buffer.from(description), overwrite: true })
    return sendJson(reply, await toView(accountId, saved), 201)
  })

  api.apiOnly('DELETE', '/workflows/:id', 'assets:write', async (request, reply) => {
    const { name, file } = await find(request)
    if (!(await userFiles.remove(accountOf(request), file.path))) throw noWorkflow()
    await userFiles.remove(accountOf(request), descriptionOf(name))
    return reply.code(204).send()
  })
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && hasAtMost(value, MAX_NAME) && readUserPath(value) === value && !HIDDEN.test(value)
}

interface SavedWorkflow {
  readonly id: string
  readonly name: string
  readonly file: UserFileInfo
}

/** Empty: it is no workflow. */
function toSaved(file: UserFileInfo): SavedWorkflow[] {
  const { path } = file
  const name = path.slice(FOLDER.length, -ENDING.length)
  // The editor keeps lists of its own there, under names that begin with a dot.
  const isWorkflow = path.startsWith(FOLDER) && path.endsWith(ENDING) && name !== '' && !path.includes('/.')
  return isWorkflow ? [{ id: toId(path), name, file }] : []
}

/** In the form of a UUID whose bits mean what their maker likes (version 8). */
function toId(path: string): string {
  const digest = hash('sha256', path)
  const variant = ((Number.parseInt(digest[16], 16) & 0b0011) | 0b1000).toString(16)
  return [
    digest.slice(0, 8),
    digest.slice(8, 12),
    `8${digest.slice(13, 16)}`,
    `${variant}${digest.slice(17, 20)}`,
    digest.slice(20, 32),
  ].join('-')
}

function descriptionOf(name: string): string {
  return `${DESCRIPTIONS}${name}${DESCRIPTION_ENDING}`
}

/** What a file holds that is no JSON is told as a text. */
function toJsonText(bytes: Uint8Array): string {
  const text = Buffer.from(bytes).toString('utf8')
  try {
    return stringifyLosslessJson(parseLosslessJson(text))
  } catch {
    return JSON.stringify(text)
  }
}

type Compare = (a: SavedWorkflow, b: SavedWorkflow) => number

const ORDERS: Readonly<Record<string, Compare>> = {
  create_time: (a, b) => a.file.createdAt.getTime() - b.file.createdAt.getTime() || byName(a, b),
  update_time: (a, b) => a.file.modifiedAt.getTime() - b.file.modifiedAt.getTime() || byName(a, b),
  name: byName,
}

function byName(a: SavedWorkflow, b: SavedWorkflow): number {
  return a.name < b.name ? -1 : Number(a.name > b.name)
}

function readListing(query: URLSearchParams) {
  const limit = readInteger(query, 'limit') ?? USUAL_LISTED
  const offset = readInteger(query, 'offset') ?? 0
  if (limit < 1 || limit > MAX_LISTED) throw invalid(`limit must be from 1 to ${MAX_LISTED}`)
  if (offset < 0) throw invalid('offset must not be negative')
  const sort = query.get('sort') ?? 'create_time'
  if (!Object.hasOwn(ORDERS, sort)) throw invalid(`sort must be one of ${Object.keys(ORDERS).join(', ')}`)
  const order = query.get('order') ?? 'desc'
  if (order !== 'asc' && order !== 'desc') throw invalid('order must be asc or desc')
  const compare: Compare = order === 'asc' ? ORDERS[sort] : (a, b) => ORDERS[sort](b, a)
  return { limit, offset, compare, part: (query.get('name') ?? '').toLowerCase() }
}

function invalid(message: string): ServiceError {
  return new ServiceError('invalid_request', message)
}

function noWorkflow(): ServiceError {
  return new ServiceError('not_found', 'there is no saved workflow with this id')
}

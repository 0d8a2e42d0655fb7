/** The user files of an account: listed, read, written, moved, removed. Refusals are plain text, as clients expect here. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import {
  isJsonObject,
  type JsonObject,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../../lib/json/lossless-json.ts'
import {
  type PutOutcome,
  readUserPath,
  USER_FILE_MAX_BYTES,
  type UserFileInfo,
} from '../../../domain/accounts/user-files.ts'
import { contentTypeOf } from '../../../domain/assets/create/asset-fields.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { readBodyBytes } from '../../kit/bodies/json-body.ts'
import {
  type Api,
  type OperationDeps,
  paramOf,
  queryOf,
  readLooseJson,
  readLooseObject,
  sendJson,
  sendJsonText,
  sendText,
} from '../legacy-operation.ts'

/** The editor's page loads it as a style sheet whether or not the user has one. */
const OWN_STYLE = 'user.css'

export function userdata(api: Api, { userFiles, accountOf, isForEditor }: OperationDeps): void {
  api.both('GET', '/userdata', 'assets:read', async (request, reply) => {
    const query = queryOf(request)
    const dir = query.get('dir') ?? ''
    if (dir === '') return sendText(reply, 400, 'Directory not provided')
    const folder = dir.replace(/\/+$/, '') === '' ? null : readUserPath(dir)
    if (folder === null) return sendText(reply, 403, 'Directory not allowed')
    const files = filesBelow(await userFiles.list(accountOf(request)), folder)
    if (files.length === 0) return sendText(reply, 404, 'Directory not found')
    const flag = (name: string) => query.get(name)?.toLowerCase() === 'true'
    const options = { isDeep: flag('recurse'), hasInfo: flag('full_info'), isSplit: flag('split') }
    return sendJson(reply, toListing(files, options))
  })

  api.both('GET', '/v2/userdata', 'assets:read', async (request, reply) => {
    const path = queryOf(request).get('path') ?? ''
    const folder = path === '' ? '' : readUserPath(path)
    if (folder === null) return sendText(reply, 403, 'Directory not allowed')
    const all = await userFiles.list(accountOf(request))
    if (folder !== '' && filesBelow(all, folder).length === 0) return sendText(reply, 404, 'Directory not found')
    return sendJson(reply, toTree(all, folder))
  })

  api.both('GET', '/userdata/:file', 'assets:read', async (request, reply) => {
    const path = readUserPath(paramOf(request, 'file'))
    const found = path === null ? null : await userFiles.read(accountOf(request), path)
    const bytes = found ?? (isForEditor && path === OWN_STYLE ? new Uint8Array() : null)
    if (path === null || bytes === null) return sendText(reply, 404, 'File not found')
    return reply
      .header('content-type', contentTypeOf(path))
      .header('content-disposition', 'attachment')
      .header('content-security-policy', "sandbox; default-src 'none'")
      .send(Buffer.from(bytes))
  })

  api.both('POST', '/userdata/:file', 'assets:write', async (request, reply) => {
    const path = readUserPath(paramOf(request, 'file'))
    if (path === null) return sendText(reply, 403, 'File not allowed')
    const bytes = await readBodyBytes(request.raw, { maxBytes: USER_FILE_MAX_BYTES })
    return answer(
      request,
      reply,
      await userFiles.put(accountOf(request), path, { bytes, overwrite: mayOverwrite(request) }),
    )
  })

  api.both('POST', '/userdata/:file/move/:dest', 'assets:write', async (request, reply) => {
    const from = readUserPath(paramOf(request, 'file'))
    const to = readUserPath(paramOf(request, 'dest'))
    if (from === null || to === null) return sendText(reply, 403, 'File not allowed')
    const outcome = await userFiles.move(accountOf(request), { from, to, overwrite: mayOverwrite(request) })
    if (outcome.outcome === 'not_found') return sendText(reply, 404, 'File not found')
    return answer(request, reply, outcome)
  })

  api.both('DELETE', '/userdata/:file', 'assets:write', async (request, reply) => {
    const path = readUserPath(paramOf(request, 'file'))
    const isRemoved = path !== null && (await userFiles.remove(accountOf(request), path))
    return isRemoved ? reply.code(204).send() : sendText(reply, 404, 'File not found')
  })
}

/** True unless the query says `false`, as in ComfyUI. */
function mayOverwrite(request: FastifyRequest): boolean {
  return queryOf(request).get('overwrite')?.toLowerCase() !== 'false'
}

function answer(request: FastifyRequest, reply: FastifyReply, outcome: PutOutcome): FastifyReply {
  if (outcome.outcome === 'exists') return sendText(reply, 409, 'File already exists')
  if (outcome.outcome === 'no_room') return sendText(reply, 413, 'There is no room for more files')
  const isFull = queryOf(request).get('full_info')?.toLowerCase() === 'true'
  return isFull ? sendJson(reply, toFileInfo(outcome.file)) : sendJsonText(reply, JSON.stringify(outcome.file.path))
}

// Listings of an account's user files, in the forms that clients ask for. Pure.

/** Files in a folder, with paths relative to it. */
function filesBelow(files: readonly UserFileInfo[], folder: string): UserFileInfo[] {
  const start = `${folder}/`
  return files.flatMap((file) =>
    file.path.startsWith(start) ? [{ ...file, path: file.path.slice(start.length) }] : [],
  )
}

interface ListingOptions {
  readonly isDeep: boolean
  readonly hasInfo: boolean
  readonly isSplit: boolean
}

function toListing(files: readonly UserFileInfo[], { isDeep, hasInfo, isSplit }: ListingOptions): object {
  const listed = isDeep ? files : files.filter(({ path }) => !path.includes('/'))
  if (hasInfo) return listed.map(toFileInfo)
  return listed.map(({ path }) => (isSplit ? [path, ...path.split('/')] : path))
}

function toFileInfo({ path, sizeBytes, modifiedAt, createdAt }: UserFileInfo): object {
  return { path, size: sizeBytes, modified: modifiedAt.getTime(), created: createdAt.getTime() }
}

/** Everything below a folder, folders before files, each with its whole path. */
function toTree(files: readonly UserFileInfo[], folder: string): object[] {
  const below = folder === '' ? files : files.filter(({ path }) => path.startsWith(`${folder}/`))
  const folders = new Set(below.flatMap(({ path }) => foldersOf(path, folder)))
  const directories = [...folders].sort().map((path) => ({ name: nameOf(path), path, type: 'directory' }))
  const entries = below.map(({ path, sizeBytes, modifiedAt }) => ({
    name: nameOf(path),
    path,
    type: 'file',
    size: sizeBytes,
    modified: modifiedAt.getTime() / 1000,
  }))
  return [...directories, ...entries]
}

function foldersOf(path: string, root: string): string[] {
  const parts = path.split('/').slice(0, -1)
  return parts.map((_, index) => parts.slice(0, index + 1).join('/')).filter((one) => one.length > root.length)
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

// The user that a client sees, and its settings. Whose they are is decided by the credential: a client sees one user.

const MAX_NAME_LENGTH = 64

export function users(api: Api, { newPromptId, limits }: OperationDeps): void {
  api.both('GET', '/users', 'any_scope', async (_request, reply) =>
    sendJson(reply, { storage: 'server', migrated: true }),
  )
  api.both('POST', '/users', 'any_scope', async (request, reply) => {
    const { username } = await readLooseObject(request, limits.maxBodyBytes)
    const name = typeof username === 'string' ? username.replace(/[^\w-]/g, '').slice(0, MAX_NAME_LENGTH) : ''
    if (name === '') throw new ServiceError('invalid_request', 'username must be a name')
    // Nothing is kept under it: the next request is told apart by its credential, not by its name.
    return sendJsonText(reply, JSON.stringify(`${name}_${newPromptId()}`))
  })
  api.apiOnly('GET', '/user', 'any_scope', async (_request, reply) => sendJson(reply, { status: 'active' }))
}

const SETTINGS_FILE = 'comfy.settings.json'
const MAX_SETTINGS_BYTES = 1024 * 1024

/** The settings of a client, kept per account in the file that ComfyUI itself would use. */
export function userSettings(api: Api, { userFiles, accountOf }: OperationDeps): void {
  async function read(accountId: string): Promise<JsonObject> {
    const bytes = await userFiles.read(accountId, SETTINGS_FILE)
    try {
      const value = bytes === null ? {} : parseLosslessJson(Buffer.from(bytes).toString('utf8'))
      return isJsonObject(value) ? value : {}
    } catch {
      // A client may have written anything into this file through the file routes; its settings then begin anew.
      return {}
    }
  }

  async function merge(accountId: string, changes: JsonObject): Promise<string> {
    const text = stringifyLosslessJson(Object.fromEntries(Object.entries({ ...(await read(accountId)), ...changes })))
    const bytes = Buffer.from(text)
    if (bytes.length > MAX_SETTINGS_BYTES)
      throw new ServiceError('payload_too_large', `settings may have at most ${MAX_SETTINGS_BYTES} bytes`)
    const { outcome } = await userFiles.put(accountId, SETTINGS_FILE, { bytes, overwrite: true })
    if (outcome === 'no_room') throw new ServiceError('payload_too_large', 'there is no room for more files')
    return text
  }

  api.both('GET', '/settings', 'assets:read', async (request, reply) =>
    sendJsonText(reply, stringifyLosslessJson(await read(accountOf(request)))),
  )
  api.both('POST', '/settings', 'assets:write', async (request, reply) =>
    sendJsonText(reply, await merge(accountOf(request), await readLooseObject(request, MAX_SETTINGS_BYTES))),
  )
  api.both('GET', '/settings/:id', 'assets:read', async (request, reply) => {
    const settings = await read(accountOf(request))
    const id = paramOf(request, 'id')
    return sendJsonText(reply, stringifyLosslessJson(Object.hasOwn(settings, id) ? settings[id] : null))
  })
  api.both('POST', '/settings/:id', 'assets:write', async (request, reply) => {
    const value = await readLooseJson(request, MAX_SETTINGS_BYTES)
    await merge(accountOf(request), Object.fromEntries([[paramOf(request, 'id'), value]]))
    return sendJson(reply, {})
  })
}

/** The user files of an account: listed, read, written, moved, removed. Refusals are plain text, as clients expect here. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type PutOutcome, readUserPath, USER_FILE_MAX_BYTES } from '../../../domain/accounts/user-files.ts'
import { contentTypeOf } from '../../../domain/assets/create/asset-fields.ts'
import { readBodyBytes } from '../../kit/bodies/json-body.ts'
import { filesBelow, toFileInfo, toListing, toTree } from '../files/userdata-view.ts'
import {
  type Api,
  type OperationDeps,
  paramOf,
  queryOf,
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

/** The user that a client sees, and its settings. Whose they are is decided by the credential: a client sees one user. */
import {
  isJsonObject,
  type JsonObject,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../../lib/json/lossless-json.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { type Api, type OperationDeps, paramOf, sendJson, sendJsonText } from '../legacy-operation.ts'
import { readLooseJson, readLooseObject } from '../lenient-body.ts'

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

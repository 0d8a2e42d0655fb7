/** The settings of a client, kept per account in the file that ComfyUI itself would use. */

import {
  isJsonObject,
  type JsonObject,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../../lib/json/lossless-json.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { type Api, type OperationDeps, paramOf, sendJson, sendJsonText } from '../legacy-operation.ts'
import { readLooseJson, readLooseObject } from '../lenient-body.ts'

const FILE = 'comfy.settings.json'
const MAX_BYTES = 1024 * 1024

export function userSettings(api: Api, { userFiles, accountOf }: OperationDeps): void {
  async function read(accountId: string): Promise<JsonObject> {
    const bytes = await userFiles.read(accountId, FILE)
    try {
      const value = bytes === null ? {} : parseLosslessJson(Buffer.from(bytes).toString('utf8'))
      return isJsonObject(value) ? value : {}
    } catch {
      // Whoever wrote something else into this file through the file routes begins anew.
      return {}
    }
  }

  async function merge(accountId: string, changes: JsonObject): Promise<string> {
    const text = stringifyLosslessJson(Object.fromEntries(Object.entries({ ...(await read(accountId)), ...changes })))
    const bytes = Buffer.from(text)
    if (bytes.length > MAX_BYTES)
      throw new ServiceError('payload_too_large', `settings may have at most ${MAX_BYTES} bytes`)
    const { outcome } = await userFiles.put(accountId, FILE, { bytes, overwrite: true })
    if (outcome === 'no_room') throw new ServiceError('payload_too_large', 'there is no room for more files')
    return text
  }

  api.both('GET', '/settings', async (request, reply) =>
    sendJsonText(reply, stringifyLosslessJson(await read(accountOf(request)))),
  )
  api.both('POST', '/settings', async (request, reply) =>
    sendJsonText(reply, await merge(accountOf(request), await readLooseObject(request, MAX_BYTES))),
  )
  api.both('GET', '/settings/:id', async (request, reply) => {
    const settings = await read(accountOf(request))
    const id = paramOf(request, 'id')
    return sendJsonText(reply, stringifyLosslessJson(Object.hasOwn(settings, id) ? settings[id] : null))
  })
  api.both('POST', '/settings/:id', async (request, reply) => {
    const value = await readLooseJson(request, MAX_BYTES)
    await merge(accountOf(request), Object.fromEntries([[paramOf(request, 'id'), value]]))
    return sendJson(reply, {})
  })
}

/** Takes entries out of the history. The jobs themselves stay, with their outputs, until their retention ends. */
import { type Api, type OperationDeps, sendJson } from '../legacy-operation.ts'
import { readLooseObject } from '../lenient-body.ts'
import { readIds, readSwitch } from '../read-ids.ts'

export function postHistory(api: Api, { jobs, accountOf, limits }: OperationDeps): void {
  api.both('POST', '/history', async (request, reply) => {
    const body = await readLooseObject(request, limits.maxBodyBytes)
    const accountId = accountOf(request)
    const isClear = readSwitch(body, 'clear')
    const ids = readIds(body, 'delete')
    if (isClear) await jobs.records.forget(accountId, null)
    if (ids.length > 0) await jobs.records.forget(accountId, ids)
    return sendJson(reply, {})
  })
}

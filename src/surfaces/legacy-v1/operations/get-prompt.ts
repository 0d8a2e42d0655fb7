/** How many prompts of the account run or wait. Clients ask it to see whether the server is there. */
import { type Api, type OperationDeps, sendJson } from '../legacy-operation.ts'

export function getPrompt(api: Api, { jobs, accountOf }: OperationDeps): void {
  api.both('GET', '/prompt', async (request, reply) => {
    const remaining = await jobs.records.countLive(accountOf(request))
    return sendJson(reply, { exec_info: { queue_remaining: remaining } })
  })
}

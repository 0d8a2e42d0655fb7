/** Cancels one job or several. What is unknown, over or somebody else's is no error: nothing was cancelled. */

import { isUuid } from '../../../../lib/ids.ts'
import { isJsonObject, type JsonValue } from '../../../../lib/json/lossless-json.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { cancelAll } from '../jobs/cancel-prompts.ts'
import { type Api, type OperationDeps, paramOf, sendJson } from '../legacy-operation.ts'
import { readLooseJson } from '../lenient-body.ts'

const MAX_IDS = 100

export function cancelJobs(api: Api, { jobs, accountOf, limits }: OperationDeps): void {
  const cancel = async (accountId: string, ids: readonly string[]) =>
    (await cancelAll(ids, { accountId, cancel: jobs.cancel, find: jobs.reader.find })).length > 0

  api.api('POST', '/jobs/:id/cancel', async (request, reply) => {
    const cancelled = await cancel(accountOf(request), [paramOf(request, 'id')])
    return sendJson(reply, { cancelled })
  })

  api.api('POST', '/jobs/cancel', async (request, reply) => {
    const { ids, problem } = readJobIds(await readBody())
    if (problem !== null) return sendJson(reply, problem, 400)
    return sendJson(reply, { cancelled: await cancel(accountOf(request), ids) })

    async function readBody(): Promise<JsonValue | undefined> {
      try {
        return await readLooseJson(request, limits.maxBodyBytes)
      } catch (error) {
        if (error instanceof ServiceError && error.refusal === 'invalid_request') return undefined
        throw error
      }
    }
  })
}

type JobIds =
  | { readonly ids: readonly string[]; readonly problem: null }
  | { readonly ids: null; readonly problem: object }

function readJobIds(body: JsonValue | undefined): JobIds {
  if (body === undefined) return refuse('Request body must be valid JSON')
  const list = isJsonObject(body) ? body['job_ids'] : undefined
  if (!Array.isArray(list)) return refuse('job_ids must be a list')
  if (list.length === 0 || list.length > MAX_IDS) return refuse(`job_ids must hold 1 to ${MAX_IDS} ids`)
  const invalid = list.filter((id) => typeof id !== 'string' || !isUuid(id))
  if (invalid.length > 0) {
    const invalid_ids = invalid.map((id) => (typeof id === 'string' ? id.slice(0, 64) : String(typeof id)))
    return { ids: null, problem: { error: 'job_ids contains invalid id(s)', invalid_ids } }
  }
  return { ids: list as string[], problem: null }
}

function refuse(error: string): JobIds {
  return { ids: null, problem: { error } }
}

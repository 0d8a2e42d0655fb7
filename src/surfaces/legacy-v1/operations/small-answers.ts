/** Routes that clients call at their start and that have one true answer here: there is nothing of the kind. */
import { describeReplacements } from '../../../../engine/graph/replace-classes.ts'
import { type Api, type OperationDeps, sendJson, sendText } from '../legacy-operation.ts'
import { readLooseJson } from '../lenient-body.ts'

const EMPTY_MAPS = ['/workflow_templates', '/i18n', '/global_subgraphs']
const ASSETS_DISABLED = {
  error: {
    code: 'SERVICE_DISABLED',
    message: 'The asset API of this version is not offered; use /api/v2/assets.',
    details: {},
  },
}

export function smallAnswers(api: Api, { limits }: OperationDeps): void {
  for (const path of EMPTY_MAPS) api.both('GET', path, async (_request, reply) => sendJson(reply, {}))
  api.both('GET', '/extensions', async (_request, reply) => sendJson(reply, []))
  api.both('GET', '/node_replacements', async (_request, reply) => sendJson(reply, describeReplacements()))
  // Results are cached per account and bounded by memory: there is nothing that a caller could or should unload.
  api.both('POST', '/free', async (request, reply) => {
    await readLooseJson(request, limits.maxBodyBytes)
    return sendJson(reply, {})
  })
  for (const path of ['/assets', '/tags'])
    api.api('GET', path, async (_request, reply) => sendJson(reply, ASSETS_DISABLED, 503))
  api.both('GET', '/health', async (_request, reply) => sendText(reply, 200, 'OK'))
}

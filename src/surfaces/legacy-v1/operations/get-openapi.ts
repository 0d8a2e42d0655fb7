/** The contract of this surface, as it stands beside the code. */
import { readFileSync } from 'node:fs'
import { type Api, type OperationDeps, sendJsonText } from '../operation.ts'

const SOURCE = new URL('../../../../spec/legacy-v1.openapi.json', import.meta.url)

export function getOpenapi(api: Api, _deps: OperationDeps): void {
  const text = readFileSync(SOURCE, 'utf8')
  api.api('GET', '/openapi.json', async (_request, reply) => sendJsonText(reply, text))
}

/** The contract of this surface, as it stands beside the code. */
import { readFileSync } from 'node:fs'
import { type Api, type OperationDeps, sendJsonText } from '../operation.ts'

const SOURCE = new URL('../../../../spec/legacy-v1.openapi.json', import.meta.url)

export function readContract(): string {
  return readFileSync(SOURCE, 'utf8')
}

export function getOpenapi(api: Api, _deps: OperationDeps): void {
  const text = readContract()
  api.api('GET', '/openapi.json', async (_request, reply) => sendJsonText(reply, text))
}

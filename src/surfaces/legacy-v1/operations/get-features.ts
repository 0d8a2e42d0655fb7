/** What this server can do; the socket answers the same to a client that asks there. */
import { type Api, type OperationDeps, sendJson } from '../legacy-operation.ts'

export function getFeatures(api: Api, { features }: OperationDeps): void {
  api.both('GET', '/features', async (_request, reply) => sendJson(reply, features))
}

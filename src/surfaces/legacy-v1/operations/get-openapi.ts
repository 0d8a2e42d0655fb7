/** The contract of this surface, with the address at which this caller reached us. */
import { placeOf } from '../../kit/guard-hooks.ts'
import { loadOpenApi } from '../../kit/openapi-document.ts'
import { type Api, type OperationDeps, sendJsonText } from '../operation.ts'

const SOURCE = new URL('../../../../spec/legacy-v1.openapi.json', import.meta.url)

export function getOpenapi(api: Api, { gate, brands }: OperationDeps): void {
  const { textFor } = loadOpenApi(SOURCE, { brands, needsCredentials: gate.hasCredentials })
  api.api('GET', '/openapi.json', async (request, reply) => {
    const { origin, mountPrefix } = placeOf(request)
    return sendJsonText(reply, textFor(origin + mountPrefix))
  })
}

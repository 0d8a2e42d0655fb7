/** The contract of this surface, with the address at which this caller reached us. */

import { loadOpenApi, type ServedDocument } from '../../kit/contracts/openapi-document.ts'
import { serviceAddressOf } from '../../kit/guards/guard-hooks.ts'
import { type Api, type OperationDeps, sendJsonText } from '../operation.ts'

const SOURCE = new URL('../../../../spec/legacy-v1.openapi.json', import.meta.url)

/** As it is served here: with this service's brands, and with or without credentials. */
export function loadContract({ gate, brands }: Pick<OperationDeps, 'gate' | 'brands'>): ServedDocument {
  return loadOpenApi(SOURCE, { brands, needsCredentials: gate.hasCredentials })
}

export function getOpenapi(api: Api, deps: OperationDeps): void {
  const { textFor } = loadContract(deps)
  api.api('GET', '/openapi.json', async (request, reply) => {
    const { origin, mountPrefix } = serviceAddressOf(request)
    return sendJsonText(reply, textFor(origin + mountPrefix))
  })
}

/** The contract of this surface. */
import { type LoadOptions, loadOpenApi, type ServedDocument } from '../kit/contracts/openapi-document.ts'

const SOURCE = new URL('../../../spec/router.openapi.json', import.meta.url)

export function loadRouterContract(options: LoadOptions): ServedDocument {
  return loadOpenApi(SOURCE, options)
}

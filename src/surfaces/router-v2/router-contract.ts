/** The contract of this surface. */
import { type LoadOptions, loadOpenApi, type ServedDocument } from '../kit/contracts/openapi-document.ts'

export type RouterSpec = ServedDocument

const SOURCE = new URL('../../../spec/router.openapi.json', import.meta.url)

export function loadRouterSpec(options: LoadOptions): RouterSpec {
  return loadOpenApi(SOURCE, options)
}

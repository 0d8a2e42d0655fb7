/** The contract of this surface. */
import { loadOpenApi, type ServedDocument } from '../kit/openapi-document.ts'

export type RouterSpec = ServedDocument

const SOURCE = new URL('../../../spec/router.openapi.json', import.meta.url)

export function loadRouterSpec(brands: readonly string[]): RouterSpec {
  return loadOpenApi(SOURCE, brands)
}

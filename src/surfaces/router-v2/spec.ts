/** The contract of the Model Router. Inputs are checked against the schemas of their models, not against this document. */
import { openSpec, type Spec } from '../kit/spec.ts'

export type RouterSpec = Pick<Spec, 'textFor' | 'methodsOf'>

const SOURCE = new URL('../../../spec/router.openapi.json', import.meta.url)

export function loadRouterSpec(brands: readonly string[]): RouterSpec {
  return openSpec({ source: SOURCE, brands, requestSchemas: [] })
}

/** A model as the catalogue shows it: billing facts only, never prices. */
import type { Model } from '../../domain/models/catalog/model.ts'
import { MODELS_PATH } from './paths.ts'

const URL_MAX_LENGTH = 2048

export function toModelEntry({ id, provider, model, chargesOnPolicyRejection }: Model): object {
  return { id, provider, model, billing: { charges_on_policy_rejection: chargesOnPolicyRejection } }
}

/** The schema's address is promised to be HTTPS: where we are reached otherwise, or there is no schema, it is left out. */
export function toModelDetail(model: Model, baseUrl: string): object {
  const url = `${baseUrl}${MODELS_PATH}/${model.id}/openapi.json`
  const isShown = model.input.schema !== null && url.startsWith('https://') && url.length <= URL_MAX_LENGTH
  return isShown ? { ...toModelEntry(model), input_schema_url: url } : toModelEntry(model)
}

/** Which addresses may be told: of bounded length, and such that the service may call them. */
import { invalidField } from '../errors.ts'
import type { WebhookSender } from './sender.ts'

const URL_MAX_LENGTH = 2048

/** Throws invalid_field. */
export function mustBeAddress({ refusalOf }: Pick<WebhookSender, 'refusalOf'>, url: string, field: string): void {
  if (url.length > URL_MAX_LENGTH) throw invalidField(field, `must have at most ${URL_MAX_LENGTH} characters`)
  const refusal = refusalOf(url)
  if (refusal !== null) throw invalidField(field, refusal)
}

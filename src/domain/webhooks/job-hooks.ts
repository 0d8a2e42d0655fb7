/** The address that a job or a call brings along: checked like every other, and shared by all that bring the same. */
import { createHash } from 'node:crypto'
import { invalidField } from '../errors.ts'
import type { WebhookSender } from './sender.ts'
import type { NewHook } from './webhook.ts'
import type { WebhookSecrets } from './webhook-secrets.ts'

export interface HookWish {
  readonly url: string
  readonly events: readonly string[]
  /** null: the common secret of the account. */
  readonly secret: Uint8Array | null
}

/** Throws invalid_field. */
export type ToHook = (accountId: string, wish: HookWish) => Promise<NewHook>

interface JobHookDeps {
  readonly sender: Pick<WebhookSender, 'refusalOf'>
  readonly secrets: Pick<WebhookSecrets, 'seal'>
}

export function createToHook({ sender, secrets }: JobHookDeps): ToHook {
  return async (accountId, { url, events, secret }) => {
    mustBeAddress(sender, url, 'webhook')
    if (events.length === 0) throw invalidField('webhook.events', 'must name at least one event')
    const wish = JSON.stringify([accountId, url, [...events].sort(), secret === null ? null : toHex(secret)])
    const id = `whj_${createHash('sha256').update(wish).digest('hex').slice(0, 32)}`
    return { id, url, events, secret: secret === null ? null : secrets.seal(secret, id) }
  }
}

function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

/** Which addresses may be told: of bounded length, and such that the service may call them. */
const URL_MAX_LENGTH = 2048

/** Throws invalid_field. */
export function mustBeAddress({ refusalOf }: Pick<WebhookSender, 'refusalOf'>, url: string, field: string): void {
  if (url.length > URL_MAX_LENGTH) throw invalidField(field, `must have at most ${URL_MAX_LENGTH} characters`)
  const refusal = refusalOf(url)
  if (refusal !== null) throw invalidField(field, refusal)
}

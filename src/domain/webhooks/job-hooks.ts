/** The address that a job or a call brings along: checked like every other, and shared by all that bring the same. */
import { createHash, createHmac, randomBytes } from 'node:crypto'
import type { Sealer } from '../../../lib/sealer.ts'
import { invalidField } from '../errors.ts'
import type { WebhookSender } from './sender.ts'
import type { Endpoint, Form, NewHook, SealedSecrets } from './webhook.ts'

export interface HookWish {
  readonly url: string
  readonly events: readonly string[]
  /** null: the common secret of the account. */
  readonly secret: Uint8Array | null
  /** Left out: in the words of the service. */
  readonly form?: Form
}

/** null: its messages are in the words of the service. */
export function readForm({ kind, description }: Pick<Endpoint, 'kind' | 'description'>): Form | null {
  return kind === 'job' && description !== '' ? (JSON.parse(description) as Form) : null
}

/** Throws invalid_field. */
export type ToHook = (accountId: string, wish: HookWish) => Promise<NewHook>

interface JobHookDeps {
  readonly sender: Pick<WebhookSender, 'refusalOf'>
  readonly secrets: Pick<WebhookSecrets, 'seal'>
}

export function createToHook({ sender, secrets }: JobHookDeps): ToHook {
  return async (accountId, { url, events, secret, form }) => {
    mustBeAddress(sender, url, 'webhook')
    if (events.length === 0) throw invalidField('webhook.events', 'must name at least one event')
    const description = form === undefined ? '' : JSON.stringify(form)
    const parts = [accountId, url, [...events].sort(), secret === null ? null : toHex(secret)]
    const wish = JSON.stringify(form === undefined ? parts : [...parts, description])
    const id = `whj_${createHash('sha256').update(wish).digest('hex').slice(0, 32)}`
    return { id, url, events, description, secret: secret === null ? null : secrets.seal(secret, id) }
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

/**
 * The secrets that sign messages. Those of endpoints are kept sealed, bound to their endpoint. A job that brings an address and no
 * secret is told under the common secret of its account, which follows from the keys of the service and is stored nowhere.
 */
export interface WebhookSecrets {
  make(): Uint8Array
  seal(secret: Uint8Array, endpointId: string): Uint8Array
  /** Those that sign a message to this endpoint now; none when the keys that sealed them are gone. */
  of(endpoint: Pick<Endpoint, 'id' | 'accountId'> & SealedSecrets, now: Date): readonly Uint8Array[]
  common(accountId: string): Uint8Array
}

const SECRET_BYTES = 32

/** `roots`: keys of the service, newest first. */
export function createWebhookSecrets(sealer: Sealer, roots: readonly Uint8Array[]): WebhookSecrets {
  const commonOf = (root: Uint8Array, accountId: string) =>
    createHmac('sha256', root).update(`webhook-secret\n${accountId}`).digest()
  return {
    make: () => randomBytes(SECRET_BYTES),
    seal: (secret, endpointId) => sealer.seal(secret, contextOf(endpointId)),
    of({ id, accountId, secret, previousSecret, previousUntil }, now) {
      if (secret === null) return roots.map((root) => commonOf(root, accountId))
      const overlaps = previousSecret !== null && previousUntil !== null && previousUntil > now
      const sealed = overlaps ? [secret, previousSecret] : [secret]
      return sealed.map((each) => sealer.open(each, contextOf(id))).filter((each) => each !== null)
    },
    common: (accountId) => commonOf(roots[0], accountId),
  }
}

function contextOf(endpointId: string): string {
  return `webhook:${endpointId}`
}

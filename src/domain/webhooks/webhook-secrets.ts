/**
 * The secrets that sign messages. Those of endpoints are kept sealed, bound to their endpoint. A job that brings an address and no
 * secret is told under the common secret of its account, which follows from the keys of the service and is stored nowhere.
 */
import { createHmac, randomBytes } from 'node:crypto'
import type { Sealer } from '../../../lib/sealer.ts'
import type { Endpoint, SealedSecrets } from './webhook.ts'

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

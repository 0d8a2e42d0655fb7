/**
 * Signatures by the Standard Webhooks specification (standardwebhooks.com, version 1): HMAC-SHA256 over id, time and body, under a
 * secret that is written as `whsec_` and base64. Several secrets, while one replaces another, make several signatures.
 */
import { createHmac } from 'node:crypto'

const PREFIX = 'whsec_'
// The bounds of the specification.
const MIN_BYTES = 24
const MAX_BYTES = 64
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/

interface SignedMessage {
  readonly id: string
  readonly at: Date
  readonly body: string
}

export function toSecretText(secret: Uint8Array): string {
  return PREFIX + Buffer.from(secret).toString('base64')
}

/** null: not a secret that the specification allows. */
export function readSecretText(text: string): Uint8Array | null {
  const encoded = text.startsWith(PREFIX) ? text.slice(PREFIX.length) : text
  if (!BASE64.test(encoded)) return null
  const secret = Buffer.from(encoded, 'base64')
  return secret.length >= MIN_BYTES && secret.length <= MAX_BYTES ? secret : null
}

export function signMessage(secrets: readonly Uint8Array[], { id, at, body }: SignedMessage): Record<string, string> {
  const seconds = String(Math.floor(at.getTime() / 1000))
  const sign = (secret: Uint8Array) =>
    `v1,${createHmac('sha256', secret).update(`${id}.${seconds}.${body}`).digest('base64')}`
  return { 'webhook-id': id, 'webhook-timestamp': seconds, 'webhook-signature': secrets.map(sign).join(' ') }
}

/**
 * What of a submit's `extra_data` goes to the server: everything, with credentials under the names that the server knows to
 * be credentials and therefore neither lists nor records. Nothing of it is kept here.
 */

import type { JsonObject } from '../../../../../lib/json/lossless-json.ts'
import type { EngineRun } from '../../../../domain/engine/engine.ts'

const SERVER_NAME: Readonly<Record<string, string>> = {
  api_key_service_org: 'api_key_comfy_org',
  auth_token_service_org: 'auth_token_comfy_org',
}
const CREDENTIAL = /key|token|secret|password|credential/i
// Shorter texts would blank out ordinary words.
const MIN_SECRET_LENGTH = 6

export function toServerExtraData(extraData: EngineRun['extraData']): JsonObject {
  const entries = Object.entries(extraData ?? {}).map(([name, value]) => [SERVER_NAME[name] ?? name, value] as const)
  return Object.fromEntries(entries) as JsonObject
}

/** Replaces credentials wherever the server printed them. */
export function createRedact(extraData: EngineRun['extraData']): (text: string) => string {
  const secrets = Object.entries(extraData ?? {}).flatMap(([name, value]) =>
    CREDENTIAL.test(name) && typeof value === 'string' && value.length >= MIN_SECRET_LENGTH ? [value] : [],
  )
  if (secrets.length === 0) return (text) => text
  return (text) => secrets.reduce((result, secret) => result.replaceAll(secret, '[redacted]'), text)
}

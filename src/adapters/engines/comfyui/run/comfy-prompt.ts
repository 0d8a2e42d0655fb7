import { uuidFromText } from '../../../../../lib/ids.ts'
import type { JsonObject } from '../../../../../lib/json/lossless-json.ts'
import type { EngineRun } from '../../../../domain/engine/engine-port.ts'

interface PromptKey {
  readonly jobId: string
  readonly attempt: number
  /** Counts the submits of one attempt. */
  readonly round: number
}

const MAX_ROUNDS = 3

/**
 * Derived from what the prompt is an attempt at: whoever knows the job can find the prompts of its earlier attempts on a server
 * again, also after a restart of ours. A canonical UUID (version 8), as newer servers demand.
 */
export function promptIdOf({ jobId, attempt, round }: PromptKey): string {
  return uuidFromText(`atelier prompt ${jobId} ${attempt} ${round}`)
}

/** Short, because it becomes part of every name that a node saves. */
export function markOf(claimId: string): string {
  return uuidFromText(`atelier claim ${claimId}`).slice(0, 8)
}

/** Every id that earlier attempts may have used. */
export function earlierPromptIds(jobId: string, attempt: number): ReadonlySet<string> {
  const ids = new Set<string>()
  for (let before = 1; before < attempt; before++) {
    for (let round = 0; round < MAX_ROUNDS; round++) ids.add(promptIdOf({ jobId, attempt: before, round }))
  }
  return ids
}

const SERVER_NAME: Readonly<Record<string, string>> = {
  api_key_service_org: 'api_key_comfy_org',
  auth_token_service_org: 'auth_token_comfy_org',
}
const CREDENTIAL = /key|token|secret|password|credential/i
// Shorter texts would blank out ordinary words.
const MIN_SECRET_LENGTH = 6

/**
 * What of a submit's `extra_data` goes to the server: everything, with credentials under the names that the server knows to
 * be credentials and therefore neither lists nor records.
 */
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

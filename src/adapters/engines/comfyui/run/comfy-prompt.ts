import { hash, randomUUID } from 'node:crypto'
import type { JsonObject } from '../../../../../lib/json/lossless-json.ts'
import type { EngineRun } from '../../../../domain/engine/engine-port.ts'
import type { ComfyEngineOptions } from '../comfy-bounds.ts'

export interface PromptKey extends Pick<EngineRun, 'jobId' | 'attempt' | 'claimId'> {
  /** Counts the submits of one attempt. */
  readonly round: number
}

// `job-job-8AAR-8claim-claim`, a canonical UUID of version 8, as newer servers demand: attempt AA and round R in hexadecimal digits.
const ROUND_AT = 17
const ATTEMPT_AT = 15

/**
 * Begins with what the prompt is an attempt at: whoever knows the job finds the prompts of its earlier attempts on a server again,
 * also after a restart of ours. Ends with the claim: a claim that a crash of the database forgot is handed out again as the same
 * attempt, and the two runs must not be taken for one.
 */
export function promptIdOf({ jobId, attempt, round, claimId }: PromptKey): string {
  const claim = claimDigits(claimId)
  const tries = `${toHex(attempt % 256, 2)}${toHex(round, 1)}`
  return `${jobPart(jobId)}-8${tries}-8${claim.slice(0, 3)}-${claim.slice(3, 15)}`
}

/** Which attempt at the job a prompt is; null: it is none. */
export function readPromptId(
  promptId: string,
  jobId: string,
): { readonly attempt: number; readonly round: number } | null {
  if (!promptId.startsWith(`${jobPart(jobId)}-8`)) return null
  const attempt = Number.parseInt(promptId.slice(ATTEMPT_AT, ROUND_AT), 16)
  return { attempt, round: Number.parseInt(promptId.slice(ROUND_AT, ROUND_AT + 1), 16) }
}

/** Which submit of this run a prompt is; null: it is none. */
export function roundOf(promptId: string, run: Omit<PromptKey, 'round'>): number | null {
  const first = promptIdOf({ ...run, round: 0 })
  const isOf =
    promptId.slice(0, ROUND_AT) === first.slice(0, ROUND_AT) &&
    promptId.slice(ROUND_AT + 1) === first.slice(ROUND_AT + 1)
  return isOf ? Number.parseInt(promptId.charAt(ROUND_AT), 16) : null
}

/** Short, because it becomes part of every name that a node saves. */
export function markOf(claimId: string): string {
  return claimDigits(claimId).slice(0, 8)
}

function jobPart(jobId: string): string {
  const digits = hash('sha256', `atelier job ${jobId}`)
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}`
}

function claimDigits(claimId: string): string {
  return hash('sha256', `atelier claim ${claimId}`)
}

function toHex(number: number, digits: number): string {
  return number.toString(16).padStart(digits, '0')
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

/**
 * Under which names this process posts prompts. The name of a client begins with that of the service and that of the process, so
 * that prompts which a dead process left on a server can be told from those of others.
 */
export interface PromptOwner {
  newClientId(): string
  /** Whether this process may end what dead ones left. */
  mayEndOrphans(): boolean
  /** Tells a prompt that is left over: it has the service's name, and its process is another one and does not live. */
  findOrphanRule(): Promise<(clientId: string) => boolean>
}

type OwnerOptions = Pick<ComfyEngineOptions, 'ownerId' | 'instanceId' | 'siblings'>

export function createPromptOwner({ ownerId, instanceId, siblings }: OwnerOptions): PromptOwner {
  const servicePrefix = ownerId === undefined ? 'atelier-' : `atelier-${ownerId}-`
  const ownPrefix = `${servicePrefix}${instanceId ?? randomUUID()}-`
  return {
    newClientId: () => `${ownPrefix}${randomUUID()}`,
    mayEndOrphans: () => ownerId !== undefined && siblings?.mayEndOrphans() !== false,
    async findOrphanRule() {
      const live = (await siblings?.findLive()) ?? new Set()
      const livePrefixes = [ownPrefix, ...[...live].map((id) => `${servicePrefix}${id}-`)]
      return (clientId) =>
        clientId.startsWith(servicePrefix) && !livePrefixes.some((prefix) => clientId.startsWith(prefix))
    },
  }
}

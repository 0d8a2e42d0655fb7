/**
 * From the meaning of an answer to the refusal that the router gets. What matters for money is `generation`: whether the provider
 * may still be working on something that the caller could pay for twice.
 */

import { findLeaves, findValue, type JsonPath } from '../../../../domain/models/catalog/json-path.ts'
import type { Generation, ProviderRefusal } from '../../../../domain/models/provider.ts'
import type { ValidationFailure } from '../../../../domain/models/router-error.ts'
import type { Answer } from '../rules/match-rules.ts'
import type { Meaning } from '../rules/rule-types.ts'

interface RefusalSource {
  readonly answer: Answer
  readonly generation: Generation
  readonly messages: readonly JsonPath[]
  readonly validationList: JsonPath | null
  readonly secret: string | null
  readonly costMicros: number | null
}

export function toRefusal(meaning: Meaning, source: RefusalSource): ProviderRefusal {
  const { answer, generation } = source
  const words = readWords(answer.document, source.messages, source.secret)
  const about = { upstreamStatus: answer.status, generation }
  switch (meaning) {
    case 'policy':
      // A refusal for its content is an answer, whenever it comes: the same input would be refused again.
      return {
        reason: 'policy',
        message: words ?? 'the provider refused the content of this call',
        upstreamStatus: answer.status,
        generation: 'ended',
        costMicros: source.costMicros,
      }
    case 'invalid':
      return {
        reason: 'invalid',
        message: words ?? 'the provider does not accept this input',
        failures: readFailures(answer.document, source.validationList),
        ...about,
      }
    case 'timeout':
      return { reason: 'timeout', message: words ?? 'the provider did not finish in its own time', ...about }
    case 'account':
      // What the provider says about our account is not shown to callers.
      return { reason: 'failed', message: 'the provider does not serve this router at the moment', ...about }
    case 'wait':
      return {
        reason: 'failed',
        message: 'the provider is too busy; nothing was made, and the same call may work later',
        ...about,
      }
    case 'transient':
    case 'failed':
      return {
        reason: 'failed',
        message: words === null ? 'the provider failed' : `the provider failed: ${words}`,
        ...about,
      }
  }
}

/** The provider's own list where it keeps to the form; null where it gave anything else. */
function readFailures(document: unknown, path: JsonPath | null): readonly ValidationFailure[] | null {
  const list = path === null ? null : findValue(document, path)
  if (!Array.isArray(list) || list.length === 0) return null
  return list.every(isFailure) ? list : null
}

function isFailure(item: unknown): item is ValidationFailure {
  if (typeof item !== 'object' || item === null) return false
  const { loc, msg, type } = item as Record<string, unknown>
  return Array.isArray(loc) && typeof msg === 'string' && typeof type === 'string'
}

/** What a failed submit may have left behind, by its HTTP status. `direct`: the answer itself would have been the result. */
export function generationAfter(status: number, isDirect: boolean): Generation {
  // Refused before anything began, by definition of the status.
  if (status < 500 && status !== 408) return 'none'
  if (status === 503) return 'none'
  // With a 500 the provider itself says that the call is over; a 502 or 504 comes from a gateway, which does not know.
  return status === 500 && isDirect ? 'ended' : 'possible'
}

/** Nothing was sent. */
export function unavailable(message: string, retryAfterMs: number | null): ProviderRefusal {
  const retryAfterSeconds = retryAfterMs === null ? null : Math.max(1, Math.ceil(retryAfterMs / 1000))
  return { reason: 'unavailable', message, upstreamStatus: null, generation: 'none', retryAfterSeconds }
}

const MAX_LENGTH = 500
const FIRST_CONTROL_FREE = 0x20
const DELETE = 0x7f

/**
 * What may be shown of a provider's own words: the texts where it keeps them, bounded, without control characters, without
 * the query of any address (links are signed there) and without the key, whatever it echoes.
 */
function readWords(document: unknown, paths: readonly JsonPath[], secret: string | null): string | null {
  const texts = typeof document === 'string' ? [document] : paths.flatMap((path) => textsAt(document, path))
  const text = texts.find((candidate) => candidate.trim() !== '')
  return text === undefined ? null : cleanWords(text, secret)
}

function textsAt(document: unknown, path: JsonPath): string[] {
  return findLeaves(document, path).flatMap(({ value }) => {
    if (typeof value === 'string') return [value]
    return typeof value === 'number' ? [String(value)] : []
  })
}

function cleanWords(text: string, secret: string | null): string {
  const shown = secret === null || secret === '' ? text : hideKey(text, secret)
  const line = [...shown.slice(0, MAX_LENGTH * 4)].map((char) => (isControl(char) ? ' ' : char)).join('')
  const clean = line
    .replace(/(https?:\/\/[^\s?#"']*)[?#][^\s"']*/g, '$1')
    .replace(/\s+/g, ' ')
    .trim()
  return clean.length > MAX_LENGTH ? `${clean.slice(0, MAX_LENGTH)}…` : clean
}

/** A key of the form `id:secret` is hidden in both halves too. */
export function hideKey(text: string, secret: string): string {
  return [secret, ...secret.split(':')]
    .filter((part) => part.length >= 6)
    .reduce((shown, part) => shown.replaceAll(part, '[key]'), text)
}

function isControl(char: string): boolean {
  const code = char.charCodeAt(0)
  return code < FIRST_CONTROL_FREE || code === DELETE
}

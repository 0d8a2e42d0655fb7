/** An answer's body as a document, and what a finished one contains: output, usage, cost. */
import { Readable } from 'node:stream'
import {
  isJsonObject,
  type JsonValue,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../../../lib/json/lossless-json.ts'
import type { ExchangeAnswer } from '../../../../../lib/outbound/exchange.ts'
import {
  findLeaves,
  findValue,
  isRecord,
  type JsonPath,
  type JsonRecord,
  type Model,
  readJsonPath,
  someValue,
} from '../../../../domain/models/catalog/model.ts'
import type { Generation, ProviderRefusal, ProviderResult } from '../../../../domain/models/provider.ts'
import type { ValidationFailure } from '../../../../domain/models/router-error.ts'
import type { CompiledModel } from '../rules/compile-model.ts'
import {
  type Answer,
  compileTemplate,
  encodeForPath,
  isEmpty,
  type Meaning,
  type TemplateValues,
} from '../rules/rule-types.ts'

const TEXT_MAX_BYTES = 4096

/** The parsed answer, with its bytes. A body that is no JSON is read as a short text. */
export interface ReadAnswer extends Answer {
  readonly isJson: boolean
  readonly bytes: Buffer
  /** Only for bodies that are handed on unread. */
  readonly stream: Readable | null
}

export function readAnswer({ status, headers, body }: ExchangeAnswer): ReadAnswer {
  if (body instanceof Readable)
    return { status, headers, document: null, isJson: false, bytes: Buffer.alloc(0), stream: body }
  try {
    return { status, headers, document: JSON.parse(body.toString('utf8')), isJson: true, bytes: body, stream: null }
  } catch {
    const document = body.toString('utf8', 0, TEXT_MAX_BYTES)
    return { status, headers, document, isJson: false, bytes: body, stream: null }
  }
}

/** The only proof of success: a leaf that should hold output holds some. States and HTTP statuses have been seen to be wrong. */
export function hasOutput(document: unknown, { assets }: CompiledModel): boolean {
  return assets.some((path) => someValue(document, path, isOutput))
}

function isOutput(value: unknown): boolean {
  return !isEmpty(value) && !isEmptyRecord(value)
}

function isEmptyRecord(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length === 0
}

/** `kept`: what was kept of the answer to the submit. */
export function toResult(answer: ReadAnswer, model: CompiledModel, kept: TemplateValues = {}): ProviderResult {
  return {
    body: answer.stream ?? answer.bytes,
    contentType: answer.headers['content-type'] ?? (answer.isJson ? 'application/json' : 'application/octet-stream'),
    usage: readUsage(answer, model),
    costMicros: readCost(answer.document, model, kept),
  }
}

export function readUsage(
  answer: Pick<Answer, 'document' | 'headers'>,
  { usage, rules }: Pick<CompiledModel, 'usage'> & Partial<Pick<CompiledModel, 'rules'>>,
): JsonRecord | null {
  const stated = usage === null ? undefined : findValue(answer.document, usage)
  const fromBody = isRecord(stated as never) ? (stated as JsonRecord) : {}
  if (rules?.usage_headers === undefined) return Object.keys(fromBody).length === 0 ? null : fromBody
  const fromHeaders = Object.entries(rules.usage_headers).flatMap(([name, header]) => {
    const value = Number(answer.headers[header])
    return Number.isFinite(value) ? [[name, value]] : []
  })
  const all: JsonRecord = { ...fromBody, ...Object.fromEntries(fromHeaders) }
  return Object.keys(all).length === 0 ? null : all
}

export function readCost(
  document: unknown,
  { cost }: Pick<CompiledModel, 'cost'>,
  kept: TemplateValues = {},
): number | null {
  if (cost === null) return null
  const stated = findValue(document, cost.path)
  const keptText = (cost.kept && kept[cost.kept]) || ''
  // Some write it as a text.
  const value = Number.parseFloat(typeof stated === 'number' || typeof stated === 'string' ? `${stated}` : keptText)
  return Number.isFinite(value) && value >= 0 ? Math.round(value * cost.microsPerUnit) : null
}

/** What a refusal cost. A model that says it charges nothing for refusals is taken at its word. */
export function refusalCost(
  { chargesOnPolicyRejection }: Model,
  document: unknown,
  compiled: CompiledModel,
): number | null {
  return chargesOnPolicyRejection === 'no' ? null : readCost(document, compiled)
}

/** The stream with its first bytes read, or null when it ends without any. */
export async function peekStream(stream: Readable): Promise<Readable | null> {
  const iterator = stream.iterator()
  const first = await iterator.next()
  if (first.done) return null
  return Readable.from(readOn(stream, first.value, iterator), { objectMode: false })
}

async function* readOn(stream: Readable, first: unknown, rest: AsyncIterator<unknown>): AsyncGenerator<unknown> {
  try {
    yield first
    for (let step = await rest.next(); !step.done; step = await rest.next()) yield step.value
  } finally {
    stream.destroy()
  }
}

// The answer to a submit as its caller gets it: the provider's own, but for the addresses that would lead past this service.

/** `changes`: by path, the text that stands there instead. null: the answer is no object. */
export function tellAnswer(
  bytes: Buffer,
  changes: Readonly<Record<string, string>>,
  values: TemplateValues,
): string | null {
  let document: JsonValue
  try {
    document = parseLosslessJson(bytes.toString())
  } catch {
    return null
  }
  if (!isJsonObject(document)) return null
  for (const [path, text] of Object.entries(changes)) {
    for (const { holder, key } of findLeaves(document, readJsonPath(path)))
      holder[key] = compileTemplate(text, encodeForPath)(values)
  }
  return stringifyLosslessJson(document)
}

interface RefusalSource {
  readonly answer: Answer
  readonly generation: Generation
  readonly messages: readonly JsonPath[]
  readonly validationList: JsonPath | null
  readonly secret: string | null
  readonly costMicros: number | null
}

/**
 * From the meaning of an answer to the refusal that the router gets. What matters for money is `generation`: whether the provider
 * may still be working on something that the caller could pay for twice.
 */
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
    case 'not_accepted':
    case 'transient':
    case 'failed':
      return {
        reason: 'failed',
        message: words === null ? 'the provider failed' : `the provider failed: ${words}`,
        ...about,
      }
  }
}

/** The provider refuses the account's own key, its rights or its balance: the account is told so, in the provider's words. */
export function toKeyRefusal(
  provider: string,
  { answer, generation, messages, secret }: Pick<RefusalSource, 'answer' | 'generation' | 'messages' | 'secret'>,
): ProviderRefusal {
  const words = readWords(answer.document, messages, secret)
  const message = `your ${provider} key was refused${words === null ? '' : `: ${words}`}`
  return { reason: 'failed', message, upstreamStatus: answer.status, generation }
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

/** An answer's body as a document, and what a finished one contains: output, usage, cost. */
import { Readable } from 'node:stream'
import type { ExchangeAnswer } from '../../../../../lib/outbound/exchange.ts'
import { findValue, someValue } from '../../../../domain/models/catalog/json-path.ts'
import { isRecord, type JsonRecord, type Model } from '../../../../domain/models/catalog/model.ts'
import type { ProviderResult } from '../../../../domain/models/provider.ts'
import type { CompiledModel } from '../rules/compile-model.ts'
import { type Answer, isEmpty } from '../rules/match-rules.ts'
import type { TemplateValues } from '../rules/text-template.ts'

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

function readUsage(answer: ReadAnswer, { usage, rules }: CompiledModel): JsonRecord | null {
  const stated = usage === null ? undefined : findValue(answer.document, usage)
  const fromBody = isRecord(stated as never) ? (stated as JsonRecord) : {}
  if (rules.usage_headers === undefined) return Object.keys(fromBody).length === 0 ? null : fromBody
  const fromHeaders = Object.entries(rules.usage_headers).flatMap(([name, header]) => {
    const value = Number(answer.headers[header])
    return Number.isFinite(value) ? [[name, value]] : []
  })
  const all: JsonRecord = { ...fromBody, ...Object.fromEntries(fromHeaders) }
  return Object.keys(all).length === 0 ? null : all
}

function readCost(document: unknown, { cost }: CompiledModel, kept: TemplateValues = {}): number | null {
  if (cost === null) return null
  const stated = findValue(document, cost.path)
  const value = typeof stated === 'number' ? stated : Number.parseFloat((cost.kept && kept[cost.kept]) || '')
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

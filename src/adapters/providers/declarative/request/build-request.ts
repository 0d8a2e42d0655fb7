/** What is sent for an input: the operation it asks for, its address and headers, and its body as JSON or as a form. */
import { sniffType } from '../../../../../lib/files/mime.ts'
import {
  type JsonObject,
  type JsonValue,
  NumberText,
  stringifyLosslessJson,
} from '../../../../../lib/json/lossless-json.ts'
import { ExchangeError } from '../../../../../lib/outbound/exchange.ts'
import { BlockedAddressError } from '../../../../../lib/outbound/network.ts'
import type { SafeFetch } from '../../../../../lib/outbound/safe-fetch.ts'
import { type FormPart, writeMultipart } from '../../../../../lib/outbound/write-multipart.ts'
import { findLeaves } from '../../../../domain/models/catalog/model.ts'
import type { ProviderCall } from '../../../../domain/models/provider.ts'
import type { ValidationFailure } from '../../../../domain/models/router-error.ts'
import type { CompiledModel, CompiledOperation } from '../rules/compile-model.ts'
import type { MediaRule, TemplateValues } from '../rules/rule-types.ts'

/**
 * The pictures of an input that are sent on as files: a data URI is decoded; an address is fetched, without credentials of the
 * caller and only from hosts that the operator allows. A picture that cannot be sent is refused by its field, before anything is
 * sent to the provider.
 */
const IMAGE_MAX_BYTES = 25 * 1024 * 1024
const REQUEST_MAX_BYTES = 64 * 1024 * 1024
const FETCH_TIME_MS = 30_000
const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/webp']
const EXTENSIONS: Readonly<Record<string, string>> = { 'image/png': 'png', 'image/jpeg': 'jpg', 'image/webp': 'webp' }
const DATA_URI = /^data:([a-z]+\/[a-z0-9.+-]+)?(?:;[a-z0-9-]+=[^;,]*)*;base64,/i

interface Media {
  readonly contentType: string
  readonly fileName: string
  readonly bytes: Buffer
}

/** The bytes behind a signed address of this service; null when it is not one. */
export type ReadHostedMedia = (
  url: URL,
  options: { readonly maxBytes: number; readonly signal: AbortSignal },
) => Promise<Buffer | null>

export interface MediaDeps {
  readonly fetch: SafeFetch
  /** Besides our own storage. A leading dot admits everything below. */
  readonly allowedHosts: readonly string[]
  readonly readHosted: ReadHostedMedia | null
}

/** A field that cannot be sent on. `failure` says which and why, in the words of a 422; null: the message says it all. */
export class FieldRefusal extends Error {
  readonly failure: ValidationFailure | null
  constructor(message: string, failure: ValidationFailure | null) {
    super(message)
    this.name = 'FieldRefusal'
    this.failure = failure
  }
}

interface MediaField {
  readonly rule: MediaRule
  readonly loc: readonly (string | number)[]
  readonly text: string
  /** How much of the bound of the whole request is left. */
  readonly roomBytes: number
}

async function resolveMedia(field: MediaField, deps: MediaDeps, signal: AbortSignal): Promise<Media> {
  const maxBytes = Math.min(field.rule.max_bytes ?? IMAGE_MAX_BYTES, IMAGE_MAX_BYTES, field.roomBytes)
  const inline = DATA_URI.exec(field.text)
  const bytes =
    inline === null ? await readAddress(field, deps, { maxBytes, signal }) : decode(field, inline[0], maxBytes)
  const contentType = sniffType(bytes)
  const allowed = field.rule.types ?? IMAGE_TYPES
  if (contentType === null || !allowed.includes(contentType)) {
    throw refuse(
      field,
      'unsupported_image_format',
      `is ${contentType ?? 'of no known type'}; give one of ${allowed.join(', ')}`,
    )
  }
  return { contentType, fileName: `${field.loc.slice(1).join('-')}.${EXTENSIONS[contentType] ?? 'bin'}`, bytes }
}

function decode(field: MediaField, head: string, maxBytes: number): Buffer {
  const text = field.text.slice(head.length)
  if (text.length * 0.75 > maxBytes + 2) throw tooLarge(field, maxBytes)
  if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(text)) throw refuse(field, 'image_load_error', 'is no base64')
  return Buffer.from(text, 'base64')
}

interface ReadOptions {
  readonly maxBytes: number
  readonly signal: AbortSignal
}

async function readAddress(field: MediaField, deps: MediaDeps, { maxBytes, signal }: ReadOptions): Promise<Buffer> {
  const url = URL.parse(field.text)
  if (url === null) throw refuse(field, 'value_error', 'must be an https address or a data:image/…;base64, text')
  const own = await deps.readHosted?.(url, { maxBytes, signal })
  if (own !== undefined && own !== null) return own
  try {
    const limits = { signal, headTimeMs: FETCH_TIME_MS, bodyTimeMs: FETCH_TIME_MS, maxBytes }
    const answer = await deps.fetch(field.text, { ...limits, allowedHosts: deps.allowedHosts })
    if (answer.status === 200 && Buffer.isBuffer(answer.body)) return answer.body
    throw refuse(field, 'file_download_error', `could not be read from ${url.host}: it answered ${answer.status}`)
  } catch (error) {
    throw toRefusal(error, field, { url, maxBytes })
  }
}

function toRefusal(error: unknown, field: MediaField, { url, maxBytes }: { url: URL; maxBytes: number }): unknown {
  if (error instanceof BlockedAddressError) return refuse(field, 'file_download_error', `is not read: ${error.message}`)
  if (!(error instanceof ExchangeError) || error.fault === 'aborted') return error
  if (error.fault === 'too_large') return tooLarge(field, maxBytes)
  return refuse(field, 'file_download_error', `could not be read from ${url.host}: ${error.message}`)
}

function tooLarge(field: MediaField, maxBytes: number): FieldRefusal {
  return refuse(field, 'file_too_large', `is larger than ${maxBytes} bytes`, { max_size_bytes: maxBytes })
}

function refuse(field: MediaField, type: string, problem: string, ctx?: ValidationFailure['ctx']): FieldRefusal {
  const name = field.loc.slice(1).join('.')
  const msg = `the image in ${name} ${problem}`
  return new FieldRefusal(msg, { loc: field.loc, msg, type, ...(ctx && { ctx }) })
}

interface BuiltRequest {
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

interface BuildOptions {
  readonly settings: Readonly<Record<string, string>>
  readonly media: MediaDeps
  readonly signal: AbortSignal
}

/** The first operation that fits; undefined when none does. */
export function chooseOperation(
  model: CompiledModel,
  input: unknown,
  settings: Readonly<Record<string, string>>,
): CompiledOperation | undefined {
  return model.operations.find(({ fits }) => fits(input, settings))
}

const LIST_BEGINS = Buffer.from('[')
const LIST_ENDS = Buffer.from(']')
const NO_VALUES: TemplateValues = {}

/** At once, but for forms, whose files may have to be fetched. Throws FieldRefusal when a field cannot be sent on. */
export function buildRequest(
  call: ProviderCall,
  { model, operation }: { readonly model: CompiledModel; readonly operation: CompiledOperation },
  { settings, media, signal }: BuildOptions,
): BuiltRequest | Promise<BuiltRequest> {
  const values = operation.hasTemplates ? toValues(call, settings) : NO_VALUES
  refuseFields(call, operation, values)
  const from = { body: call.body, input: call.input, values, knownFields: model.knownFields }
  const target = operation.path(values)
  const headers: Record<string, string> = {}
  for (const [name, write] of operation.headers) headers[name] = write(values)
  if (operation.rules.encoding === 'as_sent') {
    const contentType = call.contentType ?? 'application/json'
    return { target, headers: { ...headers, 'content-type': contentType }, body: call.body }
  }
  if (operation.rules.encoding !== 'multipart') {
    const bytes = operation.body.toBytes(from)
    const body = operation.rules.encoding === 'json_list' ? Buffer.concat([LIST_BEGINS, bytes, LIST_ENDS]) : bytes
    return { target, headers: { 'content-type': 'application/json', ...headers }, body }
  }
  return buildForm(call, operation, { target, headers, fields: operation.body.toFields(from), media, signal })
}

interface FormOptions extends Pick<BuildOptions, 'media' | 'signal'> {
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly fields: JsonObject
}

async function buildForm(
  call: ProviderCall,
  operation: CompiledOperation,
  { target, headers, fields, media, signal }: FormOptions,
): Promise<BuiltRequest> {
  const files = await readFiles(call, operation, { media, signal })
  const form = writeMultipart([...toFormFields(withoutMedia(fields, operation)), ...files])
  // Whole in memory, since it may be sent several times; media are bounded before.
  const body = Buffer.concat(await Array.fromAsync(form.body))
  return { target, headers: { ...headers, 'content-type': form.headers['content-type'] }, body }
}

export function toValues(
  { model, input, submitKey }: Pick<ProviderCall, 'model' | 'input' | 'submitKey'>,
  settings: Readonly<Record<string, string>>,
): TemplateValues {
  const values: Record<string, string> = {
    model: model.input.modelName,
    submit_key: submitKey,
    // Some providers take the fourth version only; ours are of the seventh, and as unique without the digit that says so.
    submit_uuid: submitKey.replace(/^(.{14})7/, '$14'),
  }
  for (const [name, value] of Object.entries(settings)) values[`setting.${name}`] = value
  for (const [name, value] of Object.entries(input)) {
    if (typeof value === 'string' || typeof value === 'number') values[`input.${name}`] = String(value)
  }
  return values
}

function refuseFields(
  { input }: ProviderCall,
  { refuse, body, rules }: CompiledOperation,
  values: TemplateValues,
): void {
  const other = rules.encoding === 'as_sent' ? undefined : body.findLookalike(input)
  if (other !== undefined) {
    const msg = `is not the name that is read here: write ${other.meant}, or leave it out`
    throw new FieldRefusal(msg, { loc: ['body', other.field.slice(0, 128)], msg, type: 'value_error' })
  }
  for (const { where, prefix, message } of refuse) {
    const start = prefix(values)
    const isRefused = findLeaves(input, where).some(({ value }) => typeof value === 'string' && value.startsWith(start))
    // Without such a setting of the operator there is nothing to protect.
    if (isRefused && start !== '') throw new FieldRefusal(message, null)
  }
}

async function readFiles(
  { input }: ProviderCall,
  { media: rules }: CompiledOperation,
  { media, signal }: Pick<BuildOptions, 'media' | 'signal'>,
): Promise<FormPart[]> {
  const files: FormPart[] = []
  let roomBytes = REQUEST_MAX_BYTES
  for (const [rule, path] of rules) {
    const values = findLeaves(input, path).flatMap(({ value }) => (Array.isArray(value) ? value : [value]))
    const texts = values.filter((value): value is string => typeof value === 'string')
    const max = rule.max_items ?? 1
    if (texts.length > max) {
      const msg = `${rule.path} takes at most ${max} files`
      const failure = { loc: ['body', rule.path], msg, type: 'sequence_too_long', ctx: { limit_value: max } }
      throw new FieldRefusal(msg, failure)
    }
    for (const [index, text] of texts.entries()) {
      const loc = texts.length === 1 ? ['body', rule.path] : ['body', rule.path, index]
      const field = { rule, loc, text, roomBytes: Math.min(roomBytes, IMAGE_MAX_BYTES) }
      const { bytes, contentType, fileName: filename } = await resolveMedia(field, media, signal)
      roomBytes -= bytes.length
      files.push({ name: rule.as, filename, contentType, sizeBytes: bytes.length, read: () => [bytes] })
    }
  }
  return files
}

/** Without the fields whose files become parts of their own. */
function withoutMedia(fields: JsonObject, { media }: CompiledOperation): JsonObject {
  const named = new Set(media.map(([rule]) => rule.path.replace(/\[.*$/, '')))
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !named.has(name)))
}

/** A list of plain values is repeated under its name; anything deeper travels as JSON. */
function toFormFields(fields: JsonObject): FormPart[] {
  const toPart = (name: string, value: JsonValue): FormPart[] => {
    if (value === null) return []
    const isPlainList =
      Array.isArray(value) && value.every((item) => typeof item !== 'object' || item instanceof NumberText)
    if (isPlainList) return value.flatMap((item) => toPart(name, item))
    return [{ name, value: typeof value === 'string' ? value : stringifyLosslessJson(value) }]
  }
  return Object.entries(fields).flatMap(([name, value]) => toPart(name, value))
}

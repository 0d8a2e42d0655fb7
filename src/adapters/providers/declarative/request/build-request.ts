/** What is sent for an input: the operation it asks for, its address and headers, and its body as JSON or as a form. */

import {
  type JsonObject,
  type JsonValue,
  NumberText,
  stringifyLosslessJson,
} from '../../../../../lib/json/lossless-json.ts'
import { type FormPart, writeMultipart } from '../../../../../lib/outbound/write-multipart.ts'
import { findLeaves } from '../../../../domain/models/catalog/json-path.ts'
import type { ProviderCall } from '../../../../domain/models/provider.ts'
import type { CompiledModel, CompiledOperation } from '../rules/compile-model.ts'
import type { TemplateValues } from '../rules/text-template.ts'
import { FieldRefusal, IMAGE_MAX_BYTES, type MediaDeps, REQUEST_MAX_BYTES, resolveMedia } from './input-media.ts'

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
    return { target, headers: { 'content-type': 'application/json', ...headers }, body: operation.body.toBytes(from) }
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
  const values: Record<string, string> = { model: model.input.modelName, submit_key: submitKey }
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

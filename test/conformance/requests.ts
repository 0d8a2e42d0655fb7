/** Requests for one operation: those that its declaration allows, and those that violate one rule of it. */
import fc from 'fast-check'
import type { CallOptions } from '../support/clients/call.ts'
import { type Broken, breakValue } from './broken-values.ts'
import type { Operation, Parameter, Schema, ServedDocument } from './served-document.ts'
import { type KnownValues, type ValueOptions, validValues } from './valid-values.ts'

export interface GeneratedRequest extends CallOptions {
  readonly method: string
  readonly path: string
  /** null: the request is as declared; otherwise what is wrong with it. */
  readonly broken: string | null
}

/** What goes into a request, before it is written down. */
interface Parts {
  readonly parameters: Readonly<Record<string, unknown>>
  /** undefined: none is sent. */
  readonly body: unknown
}

const HEADER_CHARACTER = fc.constantFrom(...'abcXYZ019-_.:/+=~')
/** What clients can put into a header at all. */
const SENDABLE = /^[!-~](?:[ -~]*[!-~])?$/
const BOUNDARY = 'a-boundary-of-the-generator'
/** As text, an absent member. */
const ABSENT = Symbol('absent')
/** As a body, text that is none of its media type. */
const GARBLED = Symbol('garbled')

export interface RequestSource {
  readonly document: ServedDocument
  readonly known: KnownValues
  readonly headers: Readonly<Record<string, string>>
}

export interface OperationRequests {
  readonly valid: fc.Arbitrary<GeneratedRequest>
  /** null when the operation has no rule that a request could violate. */
  readonly broken: fc.Arbitrary<GeneratedRequest> | null
}

export function requestsOf(operation: Operation, source: RequestSource): OperationRequests {
  const anyParts = validParts(operation, source)
  const breakAny = (parts: Parts) => breakParts(operation, parts, source.document)
  const valid = anyParts.map((parts) => write(operation, parts, source, null))
  if (fc.sample(anyParts, { numRuns: 3, seed: 1 }).every((parts) => breakAny(parts).length === 0)) {
    return { valid, broken: null }
  }
  const broken = fc
    .tuple(anyParts, fc.nat())
    .map(([parts, pick]) => ({ all: breakAny(parts), pick }))
    .filter(({ all }) => all.length > 0)
    .map(({ all, pick }) => all[pick % all.length])
    .map(({ parts, what }) => write(operation, parts, source, what))
  return { valid, broken }
}

function validParts({ parameters, body }: Operation, { document, known }: RequestSource): fc.Arbitrary<Parts> {
  const options: ValueOptions = { document, known }
  const named = Object.fromEntries(
    parameters.map((one) => {
      const values = validValues(
        one.schema,
        one.name,
        one.in === 'header' ? { ...options, unit: HEADER_CHARACTER } : options,
      )
      return [one.name, one.in === 'path' ? values.filter(isSegment) : values.filter(isWellFormed)]
    }),
  )
  const requiredKeys = parameters.filter((one) => one.required).map((one) => one.name)
  const bodies = body === null ? fc.constant(undefined) : validValues(body.schema, 'body', options)
  const sent = body === null || body.isRequired ? bodies : fc.option(bodies, { nil: undefined, freq: 8 })
  return fc.record({ parameters: fc.record(named, { requiredKeys }), body: sent })
}

/** An empty segment, and one that means "here" or "above", is another address. */
function isSegment(value: unknown): boolean {
  return isWellFormed(value) && !['', '.', '..'].includes(String(value))
}

function isWellFormed(value: unknown): boolean {
  return typeof value !== 'string' || value.isWellFormed()
}

interface BrokenParts {
  readonly what: string
  readonly parts: Parts
}

function breakParts(operation: Operation, parts: Parts, document: ServedDocument): BrokenParts[] {
  const found: BrokenParts[] = []
  for (const parameter of operation.parameters) {
    const texts = parameter.style === 'deepObject' ? [] : breakText(parameter.schema, parameter.required, document)
    for (const { what, value } of texts) {
      if (parameter.in === 'path' && (value === ABSENT || !isSegment(value))) continue
      if (parameter.in === 'header' && !(value === ABSENT || SENDABLE.test(String(value)))) continue
      const { [parameter.name]: _, ...others } = parts.parameters
      const changed = value === ABSENT ? others : { ...others, [parameter.name]: value }
      found.push({ what: `${parameter.in} ${parameter.name}: ${what}`, parts: { ...parts, parameters: changed } })
    }
  }
  for (const { what, value } of breakBody(operation, parts.body, document)) {
    found.push({ what: `body: ${what}`, parts: { ...parts, body: value } })
  }
  return found
}

function breakBody({ body }: Operation, value: unknown, document: ServedDocument): readonly Broken[] {
  if (body === null) return []
  const none = body.isRequired ? [{ what: 'none', value: undefined }] : []
  if (body.mediaType === 'application/json') {
    const whole = [...none, { what: 'not JSON', value: GARBLED }]
    return value === undefined ? whole : [...whole, ...breakValue(document, body.schema, value)]
  }
  if (body.mediaType !== 'multipart/form-data' || value === undefined) return []
  const form = document.resolve(body.schema)
  const required = (form['required'] ?? []) as readonly string[]
  const fields = Object.entries((form['properties'] ?? {}) as Readonly<Record<string, Schema>>).flatMap(
    ([name, schema]) =>
      breakText(schema, required.includes(name), document).map((one) => {
        const { [name]: _, ...others } = value as Record<string, unknown>
        return { what: `${name}: ${one.what}`, value: one.value === ABSENT ? others : { ...others, [name]: one.value } }
      }),
  )
  return [...none, { what: 'not a form', value: GARBLED }, ...fields]
}

/** Violations that can be written as text: there a number of the wrong kind is a word, and every string is a string. */
function breakText(given: Schema, isRequired: boolean, document: ServedDocument): Broken[] {
  const schema = document.resolve(given)
  const missing = isRequired ? [{ what: 'missing', value: ABSENT }] : []
  if (isFile(schema)) return missing
  const types = [schema['type'] ?? 'string'].flat() as string[]
  if (types.includes('array')) return missing
  const isText = types.includes('string')
  const wrong = breakValue(document, schema, '').filter(({ value }) =>
    isText ? typeof value === 'string' : typeof value !== 'object' && !types.includes(typeof value),
  )
  return [...missing, ...wrong.map(({ what, value }) => ({ what, value: String(value) }))]
}

function isFile(schema: Schema): boolean {
  return schema['format'] === 'binary' || schema['contentMediaType'] === 'application/octet-stream'
}

function write(operation: Operation, parts: Parts, source: RequestSource, broken: string | null): GeneratedRequest {
  const { method, template, parameters, body } = operation
  const headers: Record<string, string> = { ...source.headers }
  const query: string[] = []
  let path = template
  for (const parameter of parameters) {
    const value = parts.parameters[parameter.name]
    if (value === undefined) continue
    if (parameter.in === 'path') path = path.replace(`{${parameter.name}}`, encodeURIComponent(String(value)))
    else if (parameter.in === 'header') headers[parameter.name] = String(value)
    else query.push(...toQuery(parameter, value))
  }
  const target = query.length === 0 ? path : `${path}?${query.join('&')}`
  if (body === null || parts.body === undefined) return { method, path: target, headers, broken }
  const written = writeBody(body.mediaType, body.schema, parts.body, source.document)
  return { method, path: target, headers: { ...headers, 'content-type': written.type }, body: written.bytes, broken }
}

function toQuery({ name, style }: Parameter, value: unknown): string[] {
  const pair = (key: string, one: unknown) => `${encodeURIComponent(key)}=${encodeURIComponent(String(one))}`
  if (Array.isArray(value))
    return value.length === 0
      ? []
      : [`${encodeURIComponent(name)}=${value.map((one) => encodeURIComponent(String(one))).join(',')}`]
  if (style === 'deepObject') return Object.entries(value as object).map(([key, one]) => pair(`${name}[${key}]`, one))
  return [pair(name, value)]
}

function writeBody(mediaType: string, schema: Schema, value: unknown, document: ServedDocument) {
  if (value === GARBLED) return { type: mediaType, bytes: '{"' }
  if (mediaType === 'application/json') return { type: mediaType, bytes: JSON.stringify(value) }
  if (mediaType === 'multipart/form-data') {
    const form = document.resolve(schema)
    const properties = (form['properties'] ?? {}) as Readonly<Record<string, Schema>>
    const parts = Object.entries(value as object).flatMap(([name, one]) =>
      name in properties
        ? [one].flat().map((item) => toPart(name, String(item), isFile(document.resolve(properties[name]))))
        : [],
    )
    return { type: `${mediaType}; boundary=${BOUNDARY}`, bytes: `${parts.join('')}--${BOUNDARY}--\r\n` }
  }
  return { type: 'application/octet-stream', bytes: String(value) }
}

function toPart(name: string, text: string, asFile: boolean): string {
  const filename = asFile ? '; filename="picture.png"\r\nContent-Type: image/png' : ''
  return `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"${filename}\r\n\r\n${text}\r\n`
}

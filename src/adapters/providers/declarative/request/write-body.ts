/**
 * The caller's input as the provider gets it. An input that no rule changes is sent byte for byte; fields that are only added are
 * put before and behind the caller's bytes. Otherwise the document is parsed and written again, with every digit kept.
 */
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../../../lib/json/lossless-json.ts'
import { compileNames, findLookalikes } from '../../../../domain/models/catalog/lookalikes.ts'
import type { JsonRecord } from '../../../../domain/models/catalog/model.ts'
import type { BodyRules } from '../rules/rule-types.ts'
import { compileJsonTemplate, namesIn, type TemplateValues } from '../rules/text-template.ts'

interface BodyInput {
  readonly body: Buffer
  readonly input: Readonly<Record<string, unknown>>
  readonly values: TemplateValues
  /** The fields that the schema knows; null: no schema. */
  readonly knownFields: ReadonlySet<string> | null
}

export interface BodyWriter {
  /** A field that a lenient provider takes for one that the rules set or remove; undefined: there is none. */
  findLookalike(input: BodyInput['input']): { readonly field: string; readonly meant: string } | undefined
  toBytes(from: BodyInput): Buffer
  /** For forms: the fields after the rules. */
  toFields(from: BodyInput): JsonObject
}

const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
// The last of the four characters that JSON calls white space; the others come before it.
const SPACE = 0x20

export function compileBody(rules: BodyRules = {}): BodyWriter {
  const forced = rules.force ?? {}
  const force = compileFields(forced, { isForced: true })
  const inject = compileFields(rules.inject, { isForced: false }).filter(({ name }) => !(name in forced))
  const removed = [
    ...(rules.drop ?? []),
    ...Object.keys(rules.rename ?? {}),
    ...(rules.strip ?? []).map(({ field }) => field),
  ]
  const ruled = [...force, ...inject].map(({ path }) => path).concat(removed.map((field) => [field]))
  const names = compileNames(ruled)

  function findLookalike(input: BodyInput['input']) {
    const [found] = findLookalikes(names, input as JsonRecord)
    return found && { field: found.at.join('.'), meant: found.meant }
  }

  const isUntouched = ({ input, knownFields }: BodyInput) =>
    removed.every((field) => !(field in input)) &&
    (!rules.drop_unknown || knownFields === null || Object.keys(input).every((field) => knownFields.has(field)))

  function toFields({ body, values, knownFields }: BodyInput): JsonObject {
    const fields = parseLosslessJson(body.toString('utf8'))
    if (!isJsonObject(fields)) throw new Error('a model is only ever given an object')
    dropFields(fields, rules, knownFields)
    for (const { path, write } of inject) setAt(fields, path, write(values) as JsonValue, { onlyIfMissing: true })
    for (const { path, write } of force) setAt(fields, path, write(values) as JsonValue, { onlyIfMissing: false })
    return fields
  }

  function toBytes(from: BodyInput): Buffer {
    if (isUntouched(from)) {
      const after = toMissing(force, from)
      const before = after === null ? null : toMissing(inject, from)
      if (after === '' && before === '') return from.body
      if (after !== null && before !== null) return spliceFields(from.body, before, after)
    }
    return Buffer.from(stringifyLosslessJson(toFields(from)))
  }

  return { findLookalike, toBytes, toFields }
}

interface FieldWriter {
  readonly name: string
  readonly path: readonly string[]
  readonly write: (values: TemplateValues) => unknown
  /** Whether an input has it already, so that nothing is added. */
  readonly isIn: (from: BodyInput) => boolean
  /** As a member of an object, in JSON. */
  readonly toMember: (values: TemplateValues) => string
}

function compileFields(
  fields: Readonly<Record<string, unknown>> = {},
  { isForced }: { readonly isForced: boolean },
): FieldWriter[] {
  return Object.entries(fields).map(([name, value]) => {
    const write = compileJsonTemplate(value)
    const path = name.split('.')
    const [first] = path
    const label = `${JSON.stringify(name)}:`
    // Written once where nothing of a call stands in it.
    const constant = namesIn(JSON.stringify(value)).length === 0 ? label + JSON.stringify(value) : null
    return {
      ...{ name, path, write },
      isIn: isForced
        ? ({ input, values }) => first in input && input[first] === write(values)
        : ({ input }) => path.length === 1 && !isMissing(input[first]),
      toMember: (values) => constant ?? label + JSON.stringify(write(values)),
    }
  })
}

/** The members that an input lacks, as JSON; null: one of them cannot simply be added. */
function toMissing(fields: readonly FieldWriter[], from: BodyInput): string | null {
  let text = ''
  for (const { path, isIn, toMember } of fields) {
    if (isIn(from)) continue
    if (path.length > 1 || path[0] in from.input) return null
    text += text === '' ? toMember(from.values) : `,${toMember(from.values)}`
  }
  return text
}

function isMissing(value: unknown): boolean {
  return value === undefined || value === null
}

function dropFields(fields: JsonObject, rules: BodyRules, knownFields: ReadonlySet<string> | null): void {
  for (const { field, unless } of rules.strip ?? []) if (isMissing(fields[unless])) delete fields[field]
  for (const field of rules.drop ?? []) delete fields[field]
  if (rules.drop_unknown && knownFields !== null) {
    for (const field of Object.keys(fields)) if (!knownFields.has(field)) delete fields[field]
  }
  for (const [from, to] of Object.entries(rules.rename ?? {})) {
    if (!Object.hasOwn(fields, from)) continue
    fields[to] = fields[from]
    delete fields[from]
  }
}

function setAt(
  fields: JsonObject,
  path: readonly string[],
  value: JsonValue,
  { onlyIfMissing }: { readonly onlyIfMissing: boolean },
): void {
  let holder = fields
  for (const name of path.slice(0, -1)) {
    const next = holder[name]
    if (isJsonObject(next)) holder = next
    else if (isMissing(next)) {
      const made: JsonObject = {}
      holder[name] = made
      holder = made
    } else return
  }
  const last = path[path.length - 1]
  if (!onlyIfMissing || isMissing(holder[last])) holder[last] = value
}

/** `{…}` becomes `{"model":"x",…,"stream":false}`: the caller's bytes stay as they are. */
function spliceFields(body: Buffer, before: string, after: string): Buffer {
  const start = body.indexOf(OPEN_BRACE) + 1
  const end = body.lastIndexOf(CLOSE_BRACE)
  let first = start
  while (body[first] <= SPACE) first++
  const isEmpty = first === end
  const head = before === '' || (isEmpty && after === '') ? before : `${before},`
  const tail = after === '' || isEmpty ? after : `,${after}`
  const headBytes = Buffer.byteLength(head)
  const tailBytes = Buffer.byteLength(tail)
  const spliced = Buffer.allocUnsafe(body.length + headBytes + tailBytes)
  body.copy(spliced, 0, 0, start)
  spliced.write(head, start)
  body.copy(spliced, start + headBytes, start, end)
  spliced.write(tail, end + headBytes)
  body.copy(spliced, end + headBytes + tailBytes, end)
  return spliced
}

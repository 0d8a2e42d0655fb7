/** What tells two versions apart, and which differences break the calls of those who use the older one. */
import { hash } from 'node:crypto'
import { type JsonObject, type JsonValue, NumberText, stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import type { EndpointInput, EndpointOutput, VersionContent, VersionRelease } from './endpoint.ts'

type Compared = Pick<VersionContent, 'graph' | 'inputs' | 'outputs'> & Partial<Pick<VersionContent, 'required'>>

/** The same for the same content on the same release, however often it is published. */
export function hashVersion({ graph, inputs, outputs, required }: Compared): string {
  const { release } = required ?? {}
  const { deployment, version, isPinned } = release ?? {}
  const on = release === undefined ? [] : [deployment, version, isPinned]
  const text = stringifyLosslessJson([graph, inputs, outputs, ...on] as JsonValue[])
  return `sha256:${hash('sha256', text, 'hex')}`
}

export interface VersionDifference {
  readonly kind: 'input' | 'output' | 'graph' | 'release'
  /** Of the input or output; null: the graph or the release itself. */
  readonly name: string | null
  readonly isBreaking: boolean
  /** A sentence. */
  readonly message: string
}

/** From the older to the newer. */
export function compareVersions(older: Compared, newer: Compared): VersionDifference[] {
  const found = [...compareInputs(older.inputs, newer.inputs), ...compareOutputs(older.outputs, newer.outputs)]
  if (older.graph !== newer.graph)
    found.push({ kind: 'graph', name: null, isBreaking: false, message: 'the workflow has changed' })
  const [was, is] = [older, newer].map(({ required }) => nameRelease(required?.release))
  if (was !== is)
    found.push({ kind: 'release', name: null, isBreaking: false, message: `the release was ${was} and is ${is}` })
  return found
}

function nameRelease(release: VersionRelease | undefined): string {
  if (release === undefined) return 'none'
  return `${release.version} of ${release.deployment}${release.isPinned ? ', and no other' : ''}`
}

function* compareInputs(
  older: readonly EndpointInput[],
  newer: readonly EndpointInput[],
): Generator<VersionDifference> {
  const now = new Map(newer.map((input) => [input.name, input]))
  const before = new Map(older.map((input) => [input.name, input]))
  const tell = (name: string, isBreaking: boolean, message: string): VersionDifference => ({
    kind: 'input',
    name,
    isBreaking,
    message,
  })
  for (const old of older) {
    const input = now.get(old.name)
    if (input === undefined) yield tell(old.name, true, `${old.name} is gone`)
    else for (const [isBreaking, message] of compareInput(old, input)) yield tell(old.name, isBreaking, message)
  }
  for (const { name, isRequired } of newer) {
    if (!before.has(name)) yield tell(name, isRequired, `${name} is new${isRequired ? ', and required' : ''}`)
  }
}

type Told = readonly [isBreaking: boolean, message: string]

function* compareInput(old: EndpointInput, input: EndpointInput): Generator<Told> {
  const { name } = old
  if (kindOf(old) !== kindOf(input)) {
    yield [true, `${name} was ${kindOf(old)} and is ${kindOf(input)}`]
    return
  }
  if (!old.isRequired && input.isRequired) yield [true, `${name} is now required`]
  if (old.isRequired && !input.isRequired) yield [false, `${name} is no longer required`]
  yield* compareBounds(old, input)
  if (old.type === 'choice' && input.type === 'choice') {
    const gone = input.isOpen ? [] : old.choices.filter((choice) => !input.choices.includes(choice))
    if (gone.length > 0) yield [true, `${name} no longer takes ${gone.slice(0, 10).map(String).join(', ')}`]
    const added = input.choices.filter((choice) => !old.choices.includes(choice))
    if (added.length > 0) yield [false, `${name} also takes ${added.slice(0, 10).map(String).join(', ')}`]
  }
  if (old.type === 'text' && input.type === 'text' && old.pattern !== input.pattern)
    yield [
      input.pattern !== null,
      `${name} ${input.pattern === null ? 'may be any text' : `must match ${input.pattern}`}`,
    ]
  if (textOf(defaultOf(old)) !== textOf(defaultOf(input))) yield [false, `${name} has another default`]
  if (textOf(parametersOf(old)) !== textOf(parametersOf(input)))
    yield [false, `${name} is set by other parameters of image clients`]
}

type Bound = 'minimum' | 'minLength' | 'maximum' | 'maxLength' | 'maxBytes' | 'maxPixels'

function boundsOf(input: EndpointInput): Partial<Record<Bound, JsonValue>> {
  switch (input.type) {
    case 'integer':
    case 'number':
    case 'seed':
      return { minimum: input.minimum, maximum: input.maximum }
    case 'text':
      return { minLength: input.minLength, maxLength: input.maxLength }
    case 'file':
      return { maxBytes: input.maxBytes, maxPixels: input.maxPixels }
    default:
      return {}
  }
}

function* compareBounds(old: EndpointInput, input: EndpointInput): Generator<Told> {
  const now = boundsOf(input)
  for (const [bound, value] of Object.entries(boundsOf(old)) as [Bound, JsonValue][]) {
    const [was, is] = [toNumber(value), toNumber(now[bound])]
    if (was === is) continue
    const isLower = bound.startsWith('min')
    // An open bound lets everything through.
    const isNarrower = is !== null && (was === null || (isLower ? is > was : is < was))
    yield [isNarrower, `${old.name}: ${bound} was ${was ?? 'open'} and is ${is ?? 'open'}`]
  }
}

function* compareOutputs(
  older: readonly EndpointOutput[],
  newer: readonly EndpointOutput[],
): Generator<VersionDifference> {
  const now = new Map(newer.map((output) => [output.name, output]))
  const before = new Set(older.map(({ name }) => name))
  for (const { name, kind } of older) {
    const output = now.get(name)
    if (output === undefined) yield { kind: 'output', name, isBreaking: true, message: `the output ${name} is gone` }
    else if (output.kind !== kind)
      yield { kind: 'output', name, isBreaking: true, message: `the output ${name} was ${kind} and is ${output.kind}` }
  }
  for (const { name } of newer)
    if (!before.has(name)) yield { kind: 'output', name, isBreaking: false, message: `the output ${name} is new` }
}

/** What a caller has to send. A seed is a whole number to them. */
function kindOf(input: EndpointInput): string {
  if (input.type === 'seed') return 'integer'
  return input.type === 'file' ? `a file (${input.kind})` : input.type
}

function defaultOf(input: EndpointInput): JsonValue {
  return 'default' in input ? input.default : null
}

function parametersOf({ parameters = [] }: EndpointInput): JsonValue {
  return parameters.map((each) => ({ ...each }) as JsonObject)
}

function textOf(value: JsonValue): string {
  return stringifyLosslessJson(value)
}

function toNumber(value: JsonValue | undefined): number | null {
  if (value instanceof NumberText) return value.value
  if (typeof value === 'bigint' || typeof value === 'string') return Number(value)
  return typeof value === 'number' ? value : null
}

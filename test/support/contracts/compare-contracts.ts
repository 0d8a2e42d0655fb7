/**
 * What a caller of an earlier release would notice of a later one. A request that was right must stay right, and an answer must hold
 * nothing that an earlier caller does not expect: so requests may only be taken more freely, and answers only become more exact.
 * Refusals, texts and examples may change. Where it cannot be told (another pattern) the change counts as breaking.
 */
import { compareSchemas, type Place, resolveSchema, type SchemaNode } from './compare-schemas.ts'

interface Content {
  readonly schema?: SchemaNode
  readonly 'x-events'?: Readonly<Record<string, SchemaNode>>
}

interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly schema?: SchemaNode
}

type Referenced<T> = T | { readonly $ref: string }

interface Operation {
  readonly operationId: string
  readonly parameters?: readonly Referenced<Parameter>[]
  readonly requestBody?: { readonly required?: boolean; readonly content: Readonly<Record<string, Content>> }
  readonly responses: Readonly<Record<string, Referenced<{ readonly content?: Readonly<Record<string, Content>> }>>>
  readonly security?: readonly Readonly<Record<string, unknown>>[]
}

export interface Contract {
  readonly info: { readonly version: string }
  readonly security?: Operation['security']
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

/** Every breaking change, as a sentence that begins with where it is. */
export function findBreaks(before: Contract, after: Contract): string[] {
  return Object.entries(before.paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([method, operation]) => {
      const where = `${method.toUpperCase()} ${path}`
      const now = after.paths[path]?.[method]
      if (now === undefined) return [`${where} is gone`]
      const renamed =
        now.operationId === operation.operationId
          ? []
          : [`${where} was called ${operation.operationId}, which is its name in clients`]
      const sides = { before, after, old: operation, now, where }
      return [
        ...renamed,
        ...parameterBreaks(sides),
        ...bodyBreaks(sides),
        ...answerBreaks(sides),
        ...rightBreaks(sides),
      ]
    }),
  )
}

interface Sides {
  readonly before: Contract
  readonly after: Contract
  readonly old: Operation
  readonly now: Operation
  readonly where: string
}

function parameterBreaks({ before, after, old, now, where }: Sides): string[] {
  const keyOf = ({ in: place, name }: Parameter) => `${place} ${place === 'header' ? name.toLowerCase() : name}`
  const read = (contract: Contract, { parameters = [] }: Operation) =>
    new Map(parameters.map((each) => resolve(contract, each)).map((each) => [keyOf(each), each]))
  const [known, given] = [read(before, old), read(after, now)]
  const needed = [...given]
    .filter(([key, { required }]) => required === true && known.get(key)?.required !== true)
    .map(([key]) => `${where}: ${key} must be given now`)
  const others = [...known].flatMap(([key, parameter]) => {
    const place: Place = { where: `${where}: ${key}`, before, after, isRequest: true }
    const found = given.get(key)
    return found === undefined
      ? [`${place.where} is no longer taken`]
      : compareSchemas(parameter.schema ?? {}, found.schema ?? {}, place)
  })
  return [...needed, ...others]
}

function bodyBreaks({ before, after, old, now, where }: Sides): string[] {
  const [known, given] = [old.requestBody, now.requestBody]
  const needed = given?.required === true && known?.required !== true ? [`${where}: a body must be given now`] : []
  const others = Object.entries(known?.content ?? {}).flatMap(([type, { schema = {} }]) => {
    const found = given?.content[type]
    const place: Place = { where: `${where}: body`, before, after, isRequest: true }
    return found === undefined
      ? [`${where}: ${type} is no longer taken`]
      : compareSchemas(schema, found.schema ?? {}, place)
  })
  return [...needed, ...others]
}

function answerBreaks({ before, after, old, now, where }: Sides): string[] {
  const read = (contract: Contract, { responses }: Operation) =>
    new Map(
      Object.entries(responses)
        .filter(([status]) => status.startsWith('2'))
        .map(([status, response]) => [status, resolve(contract, response).content ?? {}]),
    )
  const [known, given] = [read(before, old), read(after, now)]
  return [...given].flatMap(([status, contents]) => {
    const expected = known.get(status)
    if (expected === undefined) return [`${where} answers ${status} now`]
    return Object.entries(expected).flatMap(([type, content]) => {
      const found = contents[type]
      const place: Place = { where: `${where}: ${status}`, before, after, isRequest: false }
      if (found === undefined) return [`${where}: ${status} is no longer ${type}`]
      return [...compareSchemas(content.schema ?? {}, found.schema ?? {}, place), ...eventBreaks(content, found, place)]
    })
  })
}

function eventBreaks(content: Content, found: Content, place: Place): string[] {
  return Object.entries(content['x-events'] ?? {}).flatMap(([name, schema]) => {
    const now = found['x-events']?.[name]
    const where = `${place.where}: the event ${name}`
    return now === undefined ? [`${where} is gone`] : compareSchemas(schema, now, { ...place, where })
  })
}

/** A way to prove who asks that was enough must stay enough; asking for nothing is one of them. */
function rightBreaks({ before, after, old, now, where }: Sides): string[] {
  const waysOf = (rules: Operation['security']) => (rules ?? []).map((way) => Object.keys(way).sort().join(' and '))
  const given = waysOf(now.security ?? after.security)
  if (given.length === 0) return []
  return waysOf(old.security ?? before.security)
    .filter((way) => !given.includes(way))
    .map((way) => `${where}: ${way === '' ? 'credentials are needed now' : `${way} is no longer enough`}`)
}

function resolve<T extends object>(contract: Contract, node: Referenced<T>): T {
  return '$ref' in node ? (resolveSchema(contract, node as SchemaNode) as T) : node
}

/**
 * Schemas as types of Python 3.9: objects become `TypedDict`s, written as calls, because names of members may be words of the
 * language. Objects inside of objects get a name from where they are.
 */
import { isBytes, isRule, nameOf, type Schema } from '../../lib/openapi/operations.ts'

const PRIMITIVES: Readonly<Record<string, string>> = {
  string: 'str',
  integer: 'int',
  number: 'float',
  boolean: 'bool',
  null: 'None',
}

export class PythonTypes {
  readonly #prefix: string
  readonly #lines: string[] = []
  readonly #known = new Set<string>()
  /** Types that have the members of several others, by name. */
  readonly #joined = new Map<string, readonly string[]>()

  constructor(prefix: string, schemas: Readonly<Record<string, Schema>>) {
    this.#prefix = prefix
    for (const name of Object.keys(schemas)) this.#known.add(prefix + name)
    for (const [name, schema] of Object.entries(schemas)) this.#declare(name, schema)
  }

  #declare(name: string, schema: Schema): void {
    const named = this.#prefix + name
    if (isObject(schema)) {
      this.#declareObject(named, schema)
      return
    }
    const type = this.#toType(schema, named)
    if (type === quote(named)) return
    // In brackets a name that comes later is looked up when somebody asks for it.
    const value = type.startsWith('"') ? `Union[${type}]` : type
    this.#lines.push(...toComment(schema.description, ''), `${named} = ${value}`, '')
  }

  /** In the place that `name` describes, should it need a name of its own. */
  toType(schema: Schema, name: string): string {
    return this.#toType(schema, this.#prefix + name)
  }

  /** Everything that was declared; what is made of others comes behind them. */
  toLines(): string[] {
    const left = new Map(this.#joined)
    const lines: string[] = []
    while (left.size > 0) {
      const ready = [...left].filter(([, bases]) => bases.every((base) => !left.has(base)))
      if (ready.length === 0) throw new Error(`types that are made of each other: ${[...left.keys()].join(', ')}`)
      for (const [name, bases] of ready) {
        left.delete(name)
        lines.push('', `class ${name}(${bases.join(', ')}):`, '    pass', '')
      }
    }
    return [...this.#lines, ...lines]
  }

  #toType(schema: Schema, name: string): string {
    const { $ref, type, enum: values, const: constant, allOf = [], anyOf = [], oneOf = [] } = schema
    if ($ref !== undefined) return quote(this.#prefix + nameOf($ref) + (type === 'object' ? 'Object' : ''))
    if (constant !== undefined) return toLiteral([constant])
    if (values !== undefined) return toLiteral(values)
    if (type !== undefined || schema.properties !== undefined) {
      const types = typeof type === 'string' ? [type] : (type ?? ['object'])
      return toUnion(types.map((each) => this.#toOne(each, schema, types.length === 1 ? name : `${name}Object`)))
    }
    const parts = allOf.filter((each) => !isRule(each))
    if (parts.length > 0) return this.#toJoined(parts, name)
    const choices = [...anyOf, ...oneOf].filter((each) => !isRule(each))
    if (choices.length === 0) return 'Any'
    return toUnion(choices.map((each, at) => this.#toType(each, choices.length === 1 ? name : `${name}${at + 1}`)))
  }

  #toOne(type: string, schema: Schema, name: string): string {
    if (type === 'array') return `List[${this.#toType(schema.items ?? {}, `${name}Item`)}]`
    if (type !== 'object') return isBytes(schema) ? 'FormFile' : (PRIMITIVES[type] ?? 'Any')
    const { properties, additionalProperties } = schema
    if (properties !== undefined) {
      const named = this.#freeName(name)
      this.#declareObject(named, schema)
      return quote(named)
    }
    const value = typeof additionalProperties === 'object' ? this.#toType(additionalProperties, `${name}Value`) : 'Any'
    return `Dict[str, ${value}]`
  }

  #freeName(name: string, at = 2): string {
    if (this.#known.has(name)) return this.#freeName(`${name.replace(/\d+$/, '')}${at}`, at + 1)
    this.#known.add(name)
    return name
  }

  #toJoined(parts: readonly Schema[], name: string): string {
    const bases = parts.map((part, at) => this.#toType(part, `${name}Part${at + 1}`))
    if (bases.length === 1) return bases[0]
    this.#joined.set(
      name,
      bases.map((base) => base.slice(1, -1)),
    )
    return quote(name)
  }

  #declareObject(name: string, { properties = {}, required = [], description }: Schema): void {
    const members = Object.entries(properties).map(([member, schema]) => ({
      isNeeded: required.includes(member),
      lines: [
        ...toComment(schema.description, '    '),
        `    "${member}": ${this.#toType(schema, name + toWord(member))},`,
      ],
    }))
    const [needed, others] = [members.filter(({ isNeeded }) => isNeeded), members.filter(({ isNeeded }) => !isNeeded)]
    const call = (called: string, given: typeof members) => [
      `${called} = TypedDict("${called}", {`,
      ...given.flatMap(({ lines }) => lines),
      given === needed ? '})' : '}, total=False)',
    ]
    this.#lines.push(...toComment(description, ''))
    if (others.length === 0) this.#lines.push(...call(name, needed), '')
    else if (needed.length === 0) this.#lines.push(...call(name, others), '')
    else {
      this.#lines.push(...call(`_${name}`, needed), ...call(`_${name}Rest`, others), '', '')
      this.#lines.push(`class ${name}(_${name}, _${name}Rest):`, '    pass', '', '')
    }
  }
}

function isObject({ $ref, type, properties }: Schema): boolean {
  return $ref === undefined && type === 'object' && properties !== undefined
}

function quote(name: string): string {
  return `"${name}"`
}

function toUnion(types: readonly string[]): string {
  const distinct = [...new Set(types)]
  return distinct.length === 1 ? distinct[0] : `Union[${distinct.join(', ')}]`
}

/** Fractions are no literals. */
function toLiteral(values: readonly unknown[]): string {
  const toText = (value: unknown) => {
    if (value === null) return 'None'
    if (typeof value === 'boolean') return value ? 'True' : 'False'
    return typeof value === 'string' || Number.isInteger(value) ? JSON.stringify(value) : null
  }
  const texts = values.map(toText)
  return texts.includes(null) ? 'Any' : `Literal[${texts.join(', ')}]`
}

export function toComment(text: string | undefined, indent: string): string[] {
  if (text === undefined || text === '') return []
  return text.split('\n').map((line) => `${indent}# ${line}`.trimEnd())
}

/** `node_errors` as a part of a name: `NodeErrors`. */
function toWord(member: string): string {
  return member.replace(/(?:^|[^A-Za-z0-9])([A-Za-z0-9])/g, (_, letter: string) => letter.toUpperCase())
}

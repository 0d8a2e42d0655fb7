/** Reads an object of a data file field by field, and collects what is wrong under the full name of the field. */
import { closestWord } from '../../../../lib/text/closest-word.ts'
import { isRecord, type Json, type JsonPath, type JsonRecord, readJsonPath } from './model.ts'

interface NumberRule {
  readonly min: number
  readonly max: number
}

export class FieldReader {
  readonly #object: JsonRecord
  readonly #path: string
  readonly #problems: string[]
  readonly #known = new Set<string>()

  /** `path`: the full name of the object in its file; empty for the file itself. */
  constructor(object: JsonRecord, path: string, problems: string[]) {
    this.#object = object
    this.#path = path
    this.#problems = problems
  }

  /** A document that is no object reads like an empty one, with one problem. */
  static open(document: Json | undefined, path: string, problems: string[]): FieldReader {
    if (!isRecord(document)) problems.push(`${path === '' ? 'the file' : path} must be an object`)
    return new FieldReader(isRecord(document) ? document : {}, path, problems)
  }

  problem(field: string, text: string): void {
    this.#problems.push(`${this.#name(field)} ${text}`)
  }

  has(field: string): boolean {
    this.#known.add(field)
    return this.#object[field] !== undefined && this.#object[field] !== null
  }

  value(field: string): Json | undefined {
    this.#known.add(field)
    return this.#object[field]
  }

  text(field: string, { fallback }: { readonly fallback: string }): string {
    const value = this.value(field)
    if (typeof value === 'string' && value !== '') return value
    this.problem(field, 'must be a text')
    return fallback
  }

  optionalText(field: string): string | null {
    return this.has(field) ? this.text(field, { fallback: '' }) : null
  }

  texts(field: string): readonly string[] {
    const value = this.value(field)
    if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value as readonly string[]
    this.problem(field, 'must be a list of texts')
    return []
  }

  number(field: string, rule: NumberRule & { readonly fallback: number }): number {
    return this.has(field) ? (this.optionalNumber(field, rule) ?? rule.fallback) : rule.fallback
  }

  optionalNumber(field: string, { min, max }: NumberRule): number | null {
    if (!this.has(field)) return null
    const value = this.#object[field]
    if (typeof value === 'number' && value >= min && value <= max) return value
    this.problem(field, `must be a number from ${min} to ${max}`)
    return null
  }

  /** The parsed path, or the empty one with its problem noted. */
  path(field: string): JsonPath {
    const text = this.text(field, { fallback: '' })
    return this.toPath(field, text)
  }

  toPath(field: string, text: string): JsonPath {
    try {
      return readJsonPath(text)
    } catch (error) {
      this.problem(field, error instanceof Error ? error.message : 'is not a path')
      return []
    }
  }

  choice<Choice extends string>(field: string, choices: readonly Choice[], fallback: Choice): Choice {
    if (!this.has(field)) return fallback
    const value = this.#object[field]
    const found = choices.find((choice) => choice === value)
    if (found === undefined) this.problem(field, `must be one of ${choices.join(', ')}${wasInstead(value)}`)
    return found ?? fallback
  }

  choices<Choice extends string>(field: string, choices: readonly Choice[]): readonly Choice[] {
    if (!this.has(field)) return []
    const given = this.texts(field)
    const found = choices.filter((choice) => given.includes(choice))
    if (found.length !== given.length) this.problem(field, `may hold each of ${choices.join(', ')} once`)
    return found
  }

  object(field: string): JsonRecord | null {
    if (!this.has(field)) return null
    const value = this.#object[field]
    if (isRecord(value)) return value
    this.problem(field, 'must be an object')
    return null
  }

  /** An object to be read field by field like this one; an absent one reads like an empty one. */
  record(field: string): FieldReader {
    const value = this.value(field) ?? {}
    return FieldReader.open(value, this.#name(field), this.#problems)
  }

  /** The objects of a list. */
  records(field: string): readonly FieldReader[] {
    const value = this.value(field) ?? []
    if (!Array.isArray(value)) {
      this.problem(field, 'must be a list')
      return []
    }
    return (value as readonly Json[]).map((item, index) =>
      FieldReader.open(item, `${this.#name(field)}[${index}]`, this.#problems),
    )
  }

  /** A field that nothing has read is a typing mistake that would otherwise go unseen. */
  refuseOthers(): void {
    for (const field of Object.keys(this.#object)) {
      if (this.#known.has(field)) continue
      const meant = closestWord(field, this.#known)
      const hint = meant === null ? `known here: ${[...this.#known].join(', ')}` : `did you mean ${meant}?`
      this.problem(field, `is no known field; ${hint}`)
    }
  }

  #name(field: string): string {
    return this.#path === '' ? field : `${this.#path}.${field}`
  }
}

function wasInstead(value: Json): string {
  return typeof value === 'string' ? `, not ${JSON.stringify(value.slice(0, 64))}` : ''
}

/**
 * Texts with names in braces, `/models/{model}:predict`. Parsed once when the rules are read; a name that has no value is a
 * defect of the rules, found by the linter. Values in a path are percent-encoded, so that none can change the path's shape.
 */
export type Template = (values: TemplateValues) => string

export type TemplateValues = Readonly<Record<string, string | undefined>>

const NAME = /\{([a-z_][a-z0-9_.]*)\}/g

/** The names that stand in braces. */
export function namesIn(text: string): string[] {
  return [...text.matchAll(NAME)].map(([, name]) => name)
}

export function compileTemplate(text: string, encode: (value: string) => string = (value) => value): Template {
  const names = namesIn(text)
  if (names.length === 0) return () => text
  const literals = text.split(NAME).filter((_piece, index) => index % 2 === 0)
  return (values) =>
    literals.reduce((made, literal, index) => `${made}${encode(lookUp(names[index - 1], values))}${literal}`)
}

function lookUp(name: string, values: TemplateValues): string {
  const value = values[name]
  if (value === undefined) throw new Error(`the rules name {${name}}, which has no value here`)
  return value
}

/** For paths: `projects/a` stays two segments; characters that could end or leave the path are encoded. */
export function encodeForPath(value: string): string {
  return value.split('/').map(encodeSegment).join('/')
}

function encodeSegment(segment: string): string {
  return segment === '.' || segment === '..' ? segment.replaceAll('.', '%2E') : encodeURIComponent(segment)
}

/** A JSON value whose texts are templates. */
export function compileJsonTemplate(value: unknown): (values: TemplateValues) => unknown {
  if (typeof value === 'string') return compileTemplate(value)
  if (Array.isArray(value)) {
    const items = value.map(compileJsonTemplate)
    return (values) => items.map((item) => item(values))
  }
  if (typeof value !== 'object' || value === null) return () => value
  const entries = Object.entries(value).map(([name, item]) => [name, compileJsonTemplate(item)] as const)
  return (values) => Object.fromEntries(entries.map(([name, item]) => [name, item(values)]))
}

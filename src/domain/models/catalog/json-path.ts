/**
 * Where a value is in a JSON document: names joined by dots, `[]` for every element of a list, `[0]` for one of them, and
 * an empty path for the document itself: `data[].url`, `task.content.url`, `output[]`. A path that leads nowhere finds nothing.
 */
export type JsonPath = readonly (string | number | typeof EVERY)[]

const EVERY = Symbol('every element')
const SEGMENT = /^([^.[\]]+)?((?:\[\d*\])*)$/

/** The text that `readJsonPath` reads. */
export function writeJsonPath(path: JsonPath): string {
  const text = path.map((step) => (typeof step === 'string' ? `.${step}` : `[${step === EVERY ? '' : String(step)}]`))
  return text.join('').replace(/^\./, '')
}

/** Where a found value hangs, so that it can be replaced: `holder[key]` is the value. */
export interface Leaf {
  readonly holder: Record<string | number, unknown>
  readonly key: string | number
  readonly value: unknown
}

/** Throws when the text is no path. */
export function readJsonPath(text: string): JsonPath {
  if (text === '') return []
  return text.split('.').flatMap((segment) => {
    const found = SEGMENT.exec(segment)
    if (segment === '' || found === null)
      throw new Error(`${JSON.stringify(text)} is not a path; write it like data[].url`)
    const indexes = [...(found[2] ?? '').matchAll(/\[(\d*)\]/g)].map(([, index]) =>
      index === '' ? EVERY : Number(index),
    )
    return found[1] === undefined ? indexes : [found[1], ...indexes]
  })
}

/** Every value at the path, in order, null included: some providers write out what they do not have. */
export function findLeaves(document: unknown, path: JsonPath): Leaf[] {
  let leaves: Leaf[] = [{ holder: { document }, key: 'document', value: document }]
  for (const step of path) leaves = leaves.flatMap(({ value }) => stepInto(value, step))
  return leaves
}

function stepInto(value: unknown, step: JsonPath[number]): Leaf[] {
  if (typeof value !== 'object' || value === null) return []
  const holder = value as Record<string | number, unknown>
  if (step === EVERY) return Array.isArray(value) ? value.map((item, key) => ({ holder, key, value: item })) : []
  return hasStep(value, step) ? [{ holder, key: step, value: holder[step] }] : []
}

/** Whether a value at the path passes, null included. For answers that are read with every call: nothing is made on the way. */
export function someValue(document: unknown, path: JsonPath, passes: (value: unknown) => boolean, from = 0): boolean {
  let value = document
  for (let at = from; at < path.length; at++) {
    const step = path[at]
    if (typeof value !== 'object' || value === null) return false
    if (step === EVERY)
      return Array.isArray(value) && value.some((item: unknown) => someValue(item, path, passes, at + 1))
    if (!hasStep(value, step)) return false
    value = (value as Record<string | number, unknown>)[step]
  }
  return passes(value)
}

/** The first value at the path; undefined when there is none. */
export function findValue(document: unknown, path: JsonPath): unknown {
  let found: unknown
  someValue(document, path, (value) => {
    found = value
    return true
  })
  return found
}

function hasStep(holder: object, step: string | number): boolean {
  if (typeof step === 'number') return Array.isArray(holder) && step < holder.length
  return !Array.isArray(holder) && Object.hasOwn(holder, step)
}

/**
 * Names places in a JSON document: `result.sample`, `data[].url`, `parts[0].text`. `[]` stands for every element. A place that
 * is not there gives nothing; a path never fails on a document, only on its own spelling.
 */
import type { Json, JsonRecord } from './model.ts'

type Step = { readonly kind: 'name'; readonly name: string } | { readonly kind: 'index'; readonly index: number | null }

/** One place that a path leads to: the container, and where in it. */
export interface Leaf {
  readonly value: Json
  /** As it would stand in an error's `loc`. */
  readonly at: readonly (string | number)[]
}

const PATH = /^[^.[\]]+(?:\[\d*\])*(?:\.[^.[\]]+(?:\[\d*\])*)*$/
const STEP = /([^.[\]]+)|\[(\d*)\]/g
const MAX_LENGTH = 256

export function isJsonPath(path: string): boolean {
  return path.length <= MAX_LENGTH && PATH.test(path)
}

function readSteps(path: string): Step[] {
  if (!isJsonPath(path)) throw new Error(`${JSON.stringify(path)} is no path into a document.`)
  return Array.from(path.matchAll(STEP), ([, name, index]) => {
    if (name !== undefined) return { kind: 'name', name }
    return { kind: 'index', index: index === '' ? null : Number(index) }
  })
}

/** Every place that the path leads to, in order. */
export function findLeaves(document: Json, path: string): Leaf[] {
  let leaves: Leaf[] = [{ value: document, at: [] }]
  for (const step of readSteps(path)) leaves = leaves.flatMap((leaf) => follow(leaf, step))
  return leaves
}

/** The first of them; undefined when there is none. */
export function findValue(document: Json, path: string): Json | undefined {
  return findLeaves(document, path)[0]?.value
}

function follow({ value, at }: Leaf, step: Step): Leaf[] {
  if (step.kind === 'name') {
    if (!isRecord(value) || !Object.hasOwn(value, step.name)) return []
    return [{ value: value[step.name], at: [...at, step.name] }]
  }
  if (!Array.isArray(value)) return []
  const items = value as readonly Json[]
  if (step.index === null) return items.map((item, index) => ({ value: item, at: [...at, index] }))
  return step.index < items.length ? [{ value: items[step.index], at: [...at, step.index] }] : []
}

export function isRecord(value: Json | undefined): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Names that a lenient reader of an input takes for one that we read. Many compare names without case, some without the signs
 * between words (`sampleCount`, `sample_count`, `n[]`): what we overlook would be sent on, and would decide what is made and not
 * what it costs.
 */
import type { JsonPath } from './json-path.ts'
import type { JsonRecord } from './model.ts'

/** What is read of an object, by name, and of the elements of a list. */
interface ReadNames {
  readonly members: Map<string, ReadNames>
  /** The names as a lenient reader compares them. */
  readonly folded: Map<string, string>
  elements: ReadNames | null
}

interface Lookalike {
  readonly at: readonly (string | number)[]
  readonly meant: string
}

export function compileNames(paths: readonly JsonPath[]): ReadNames {
  const root = toNames()
  for (const path of paths) {
    let names = root
    for (const step of path) names = typeof step === 'string' ? memberOf(names, step) : elementsOf(names)
  }
  return root
}

export function findLookalikes(names: ReadNames, input: JsonRecord): readonly Lookalike[] {
  const found: Lookalike[] = []
  collect(names, input, { at: [], found })
  return found
}

/** Upper case first: there are letters with the same upper case and different lower cases. */
function foldName(name: string): string {
  return name
    .toUpperCase()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]/gu, '')
}

function collect(
  names: ReadNames,
  value: unknown,
  { at, found }: { readonly at: readonly (string | number)[]; readonly found: Lookalike[] },
): void {
  if (typeof value !== 'object' || value === null) return
  if (Array.isArray(value)) {
    if (names.elements === null) return
    for (const [index, item] of value.entries()) collect(names.elements, item, { at: [...at, index], found })
    return
  }
  for (const [name, item] of Object.entries(value)) {
    const read = names.members.get(name)
    const meant = read === undefined ? names.folded.get(foldName(name)) : undefined
    if (read !== undefined) collect(read, item, { at: [...at, name], found })
    if (meant !== undefined) found.push({ at: [...at, name], meant })
  }
}

function toNames(): ReadNames {
  return { members: new Map(), folded: new Map(), elements: null }
}

function memberOf(names: ReadNames, name: string): ReadNames {
  const known = names.members.get(name) ?? toNames()
  names.members.set(name, known)
  names.folded.set(foldName(name), name)
  return known
}

function elementsOf(names: ReadNames): ReadNames {
  names.elements ??= toNames()
  return names.elements
}

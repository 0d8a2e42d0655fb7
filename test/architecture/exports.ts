/** Finds exports that no other file imports, by name. */
import path from 'node:path'
import type { Source } from './sources.ts'

const DECLARED = /^export\s+(?:abstract\s+|async\s+)*(?:function\*?|class|const|let|interface|type)\s+([\w$]+)/gm
const DESTRUCTURED = /^export\s+const\s+\{([^}]*)\}/gm
const LISTED = /^export\s+(?:type\s+)?\{([^}]*)\}/gm
const TAKEN = /(?:^|\n)\s*(?:import|export)\s+(?:type\s+)?\{([^}]*)\}\s*from\s*'([^']+)'/g
const TAKEN_WHOLE = /(?:^|\n)(?:import|export)\s+\*(?:\s+as\s+\w+)?\s+from\s+'([^']+)'/g
const TAKEN_LATE = /\{([^{}]*)\}\s*=\s*\(?\s*\(?\s*await\s+import\(\s*'([^']+)'/g
// Types of whole modules, and late imports that are not taken apart.
const MENTIONED = /\bimport\(\s*'([^']+)'/g

const ALL = '*'

function namesIn(list: string, which: 'own' | 'local'): string[] {
  return list
    .split(',')
    .map((item) => item.trim().replace(/^type\s+/, ''))
    .filter((item) => item !== '')
    .map((item) => {
      const [name, alias = name] = item.split(/\s+as\s+|\s*:\s*/)
      return which === 'own' ? name : alias
    })
}

export function exportsOf({ text }: Source): string[] {
  return [
    ...[...text.matchAll(DECLARED)].map((match) => match[1]),
    ...[...text.matchAll(DESTRUCTURED)].flatMap((match) => namesIn(match[1], 'local')),
    ...[...text.matchAll(LISTED)].flatMap((match) => namesIn(match[1], 'local')),
  ]
}

/** What `source` takes of other files: names by file, `*` for everything. */
function takenBy({ file, text }: Source): [string, string][] {
  const resolve = (specifier: string) => path.posix.join(path.posix.dirname(file), specifier)
  const named = [...text.matchAll(TAKEN), ...text.matchAll(TAKEN_LATE)].flatMap(([, list, from]) =>
    namesIn(list, 'own').map((name): [string, string] => [resolve(from), name]),
  )
  const late = new Set([...text.matchAll(TAKEN_LATE)].map((match) => match[2]))
  const whole = [...text.matchAll(TAKEN_WHOLE), ...text.matchAll(MENTIONED)]
    .map((match) => match[1])
    .filter((from) => !late.has(from))
    .map((from): [string, string] => [resolve(from), ALL])
  return [...named, ...whole]
}

/** Exports of `owners` that no other source takes, as `file: name`. */
export function findDeadExports(owners: readonly Source[], everybody: readonly Source[]): string[] {
  const taken = new Map<string, Set<string>>()
  for (const source of everybody) {
    for (const [file, name] of takenBy(source)) {
      const names = taken.get(file) ?? new Set()
      taken.set(file, names.add(name))
    }
  }
  return owners.flatMap((source) => {
    const names = taken.get(source.file) ?? new Set()
    if (names.has(ALL)) return []
    return exportsOf(source)
      .filter((name) => !names.has(name))
      .map((name) => `${source.file}: ${name}`)
  })
}

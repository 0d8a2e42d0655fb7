/** The source files of the project and what they import, read as text: what the architecture tests judge. */
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

export const project = fileURLToPath(new URL('../..', import.meta.url))

export interface Import {
  /** As written. */
  readonly specifier: string
  /** The project's own file, relative to the project; null for a package. */
  readonly file: string | null
  /** The package's name; null for an own file and for `node:` modules. */
  readonly packageName: string | null
}

export interface Source {
  /** Relative to the project, with slashes. */
  readonly file: string
  readonly text: string
  readonly imports: readonly Import[]
}

// Import and export statements as the formatter leaves them, dynamic imports, and modules that are started as threads.
const STATEMENT =
  /^(?:import|export)\s+(?:type\s+)?(?:\*(?:\s+as\s+\w+)?|(?:\w+\s*,\s*)?\{[^}]*\}|\w+)\s+from\s+'([^']+)'/gm
const BARE = /^import\s+'([^']+)'/gm
const DYNAMIC = /\bimport\(\s*'([^']+)'/g
const THREAD = /new URL\(\s*'([^']+\.ts)'\s*,\s*import\.meta\.url/g

function toImport(file: string, specifier: string): Import {
  if (specifier.startsWith('.')) {
    return { specifier, file: path.posix.join(path.posix.dirname(file), specifier), packageName: null }
  }
  const isBuiltIn = specifier.startsWith('node:')
  const depth = specifier.startsWith('@') ? 2 : 1
  return { specifier, file: null, packageName: isBuiltIn ? null : specifier.split('/').slice(0, depth).join('/') }
}

function readSource(file: string): Source {
  const text = readFileSync(path.join(project, file), 'utf8')
  const specifiers = [STATEMENT, BARE, DYNAMIC, THREAD].flatMap((pattern) =>
    [...text.matchAll(pattern)].map((m) => m[1]),
  )
  return { file, text, imports: specifiers.map((specifier) => toImport(file, specifier)) }
}

export function readSources(...patterns: string[]): Source[] {
  return globSync(patterns, { cwd: project })
    .map((file) => file.replaceAll(path.sep, '/'))
    .sort()
    .map(readSource)
}

export function isTest(source: Source): boolean {
  // A surface that may be left out brings its tests and their rigs along.
  return source.file.endsWith('.test.ts') || /^(?:engine|src\/.+)\/test\//.test(source.file)
}

/** The code of a source line by line, without comment lines. Good enough for words that never stand in a string. */
export function codeLines(source: Source): { readonly line: number; readonly code: string }[] {
  return source.text
    .split('\n')
    .map((code, index) => ({ line: index + 1, code }))
    .filter(({ code }) => !/^\s*(\/\/|\/\*|\*)/.test(code))
    .map(({ line, code }) => ({ line, code: code.replace(/\s\/\/ .*$/, '') }))
}

export function readJson(file: string): unknown {
  return JSON.parse(readFileSync(path.join(project, file), 'utf8'))
}

/**
 * The types that the package gives to programs: what its doors export, and everything that these refer to. What the compiler tells apart by
 * where it was declared is written so that it can be compared: without fields that only a class itself can see, and symbols by their names.
 */
import { readFileSync } from 'node:fs'
import path from 'node:path'

const IMPORTED = /(?:from |import\()['"](\.[^'"]+)['"]/g
const SYMBOL = /const (\w+): unique symbol/g
const PRIVATE = /^\s*#private;\n/gm

interface Manifest {
  readonly exports: Readonly<Record<string, { readonly types: string }>>
}

export interface PublicTypes {
  /** The file of each door, by its name: `atelier/engine`. */
  readonly doors: ReadonlyMap<string, string>
  /** Texts by file, relative to the package. */
  readonly files: ReadonlyMap<string, string>
}

export function readPublicTypes(packageFolder: string): PublicTypes {
  const manifest = JSON.parse(readFileSync(path.join(packageFolder, 'package.json'), 'utf8')) as Manifest
  const doors = new Map(
    Object.entries(manifest.exports).map(([name, { types }]) => [`atelier${name.slice(1)}`, path.normalize(types)]),
  )
  const files = new Map<string, string>()
  const waiting = [...doors.values()]
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (files.has(file)) continue
    const declared = readFileSync(path.join(packageFolder, file), 'utf8')
    const text = withoutComments(declared.replaceAll(PRIVATE, '').replaceAll(SYMBOL, 'const $1: "$1"'))
    files.set(file, text)
    for (const [, to = ''] of text.matchAll(IMPORTED)) waiting.push(path.join(path.dirname(file), toDeclarations(to)))
  }
  return { doors, files }
}

/** Names of a door that programs may import. */
export function exportedNames({ doors, files }: PublicTypes, door: string): string[] {
  const namesIn = (file: string): string[] => {
    const text = files.get(file) ?? ''
    const declared = text.matchAll(/^export declare (?:abstract )?(?:function\*?|class|const|let) (\w+)/gm)
    const types = text.matchAll(/^export (?:declare )?(?:interface|type) (\w+)/gm)
    const listed = [...text.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap(([, list = '']) =>
      list.split(',').map((name) =>
        name
          .trim()
          .replace(/^type /, '')
          .replace(/^.* as /, ''),
      ),
    )
    const whole = [...text.matchAll(/^export \* from ['"]([^'"]+)['"]/gm)].flatMap(([, from = '']) =>
      namesIn(path.join(path.dirname(file), toDeclarations(from))),
    )
    const own = [...declared, ...types].map(([, name = '']) => name)
    return [...own, ...listed.filter((name) => name !== ''), ...whole]
  }
  return [...new Set(namesIn(doors.get(door) ?? ''))].sort()
}

/** The compiler leaves the endings of imports in declarations as they were written. */
function toDeclarations(specifier: string): string {
  return specifier.replace(/\.[jt]s$/, '.d.ts')
}

/** Comments of declarations stand in lines of their own. */
function withoutComments(text: string): string {
  return text.replaceAll(/^[ \t]*\/\*\*[\s\S]*?\*\/\n/gm, '').replaceAll(/^[ \t]*\/\/.*\n/gm, '')
}

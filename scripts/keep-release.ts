/**
 * Keeps what a release promises, for the tests that later versions do not break it: the contracts of `spec/` without their prose, and the
 * types of the packed doors. Run at a release, behind `node scripts/build.ts`: `node scripts/keep-release.ts`.
 */
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { readPublicTypes } from './public-types.ts'

const project = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const kept = path.join(project, 'test/fixtures/released')
const PROSE = ['description', 'summary', 'title', 'example', 'examples', 'x-error', 'tags', 'headers', 'servers']
/** Below these, names are those of the contract, whatever they are. */
const NAMED = ['properties', 'paths', 'schemas', 'responses', 'parameters', 'content', 'x-events', 'securitySchemes']

// Of answers: their codes and texts may change, and clients read all of them alike.
const REFUSAL = /^(?:[345]\d\d|default)$/

function withoutProse(value: unknown, isNamed = false): unknown {
  if (Array.isArray(value)) return value.map((each) => withoutProse(each))
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).filter(([name]) => (isNamed ? !REFUSAL.test(name) : !PROSE.includes(name)))
  return Object.fromEntries(members.map(([name, member]) => [name, withoutProse(member, NAMED.includes(name))]))
}

/** A line for each operation and for each schema: what changes from release to release can be read. */
function toLines(contract: Readonly<Record<string, unknown>>): string {
  const toObject = (value: unknown, depth: number, indent: string): string => {
    if (depth === 0 || typeof value !== 'object' || value === null || Array.isArray(value)) return JSON.stringify(value)
    const lines = Object.entries(value).map(
      ([name, member]) => `${indent} ${JSON.stringify(name)}:${toObject(member, depth - 1, `${indent} `)}`,
    )
    return lines.length === 0 ? '{}' : `{\n${lines.join(',\n')}\n${indent}}`
  }
  return `${toObject(contract, 3, '')}\n`
}

function write(file: string, text: string): void {
  const place = path.join(kept, file)
  mkdirSync(path.dirname(place), { recursive: true })
  writeFileSync(place, text)
}

rmSync(kept, { recursive: true, force: true })
const { version } = JSON.parse(readFileSync(path.join(project, 'package.json'), 'utf8')) as { readonly version: string }
for (const name of globSync('*.json', { cwd: path.join(project, 'spec') }))
  write(
    `spec/${name}`,
    toLines(
      withoutProse(JSON.parse(readFileSync(path.join(project, 'spec', name), 'utf8'))) as Record<string, unknown>,
    ),
  )
const { doors, files } = readPublicTypes(project)
// Not by the name that compilers and linters look for.
for (const [file, text] of files) write(`types/${file}.txt`, text)
write('release.json', `${JSON.stringify({ version, doors: Object.fromEntries(doors) }, null, 2)}\n`)

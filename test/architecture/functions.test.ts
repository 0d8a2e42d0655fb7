import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseAst } from 'rolldown/parseAst'
import { isTest, readSources, type Source } from './sources.ts'

/** About what a screen holds. Long tables are constants, not functions. */
const MAX_LINES = 80

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
}

const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'])

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'
}

/** Those with at least so many characters. */
function functionsIn(root: Node, leastLength: number): Node[] {
  const found: Node[] = []
  const left: unknown[] = [root]
  while (left.length > 0) {
    const value = left.pop()
    if (Array.isArray(value)) left.push(...value)
    else if (isNode(value) && value.end - value.start >= leastLength) {
      if (FUNCTIONS.has(value.type)) found.push(value)
      left.push(...Object.values(value))
    }
  }
  return found.sort((a, b) => a.start - b.start)
}

const countLines = (text: string) => text.split('\n').length

function longFunctions({ file, text }: Source, maxLines: number): string[] {
  // A shorter file has no longer function, and most files are shorter.
  if (countLines(text) <= maxLines) return []
  const program = parseAst(text, { lang: file.endsWith('x') ? 'tsx' : 'ts' }, file)
  return functionsIn(program, maxLines).flatMap(({ start, end }) => {
    const lines = countLines(text.slice(start, end))
    return lines > maxLines ? [`${file}:${countLines(text.slice(0, start))} has ${lines} lines`] : []
  })
}

test('functions of every kind are measured, comments and those within others included', () => {
  const text = [
    'export function outer(): void {',
    '  const inner = () => {',
    '    // why',
    '    return 1',
    '  }',
    '}',
    'class Thing {',
    '  method(): void {',
    '    void 0',
    '    void 1',
    '  }',
    '}',
  ].join('\n')
  const found = longFunctions({ file: 'a.ts', text, imports: [] }, 3)
  assert.deepEqual(found, ['a.ts:1 has 6 lines', 'a.ts:2 has 4 lines', 'a.ts:8 has 4 lines'])
})

test('no function is longer than a screen', () => {
  const sources = readSources(
    ...['lib', 'engine', 'src', 'scripts', 'bench'].map((folder) => `${folder}/**/*.ts`),
    ...['client/*.ts', 'client/generate/*.ts'],
    'console/src/**/*.{ts,tsx}',
  )
  const own = sources.filter((source) => !isTest(source) && !source.file.endsWith('.d.ts'))
  assert.deepEqual(
    own.flatMap((source) => longFunctions(source, MAX_LINES)),
    [],
  )
})

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { codeLines, isTest, project, readSources, type Source } from './sources.ts'

// Written in parts, so that this file does not match itself.
const OUTSIDE_WORDS = [`../${'shared'}/`, `/${'work'}/`, `/${'root'}/`, `/${'home'}/`, `registry${'.'}npm`]
const WARN_LINES = 400
const MAX_LINES = 500

const sources = readSources(
  'lib/**/*.ts',
  'client/*.ts',
  'client/generate/*.ts',
  'engine/**/*.ts',
  'src/**/*.ts',
  'test/**/*.ts',
  'scripts/**/*.ts',
  'bench/**/*.ts',
  'deploy/**/*.ts',
)

const isOwn = ({ file }: Source) => /^(lib|client|engine|src)\//.test(file)

function findLines(among: readonly Source[], pattern: RegExp): string[] {
  return among.flatMap((source) =>
    codeLines(source)
      .filter(({ code }) => pattern.test(code))
      .map(({ line, code }) => `${source.file}:${line}: ${code.trim()}`),
  )
}

test('only the config and the entry point touch the environment', () => {
  // The samples are texts for programs of others.
  const allowed = ['src/bin.ts', 'src/surfaces/jobs-v2/views/endpoint-samples.ts', 'src/surfaces/docs/samples.ts']
  const others = sources.filter(
    (source) =>
      isOwn(source) && !isTest(source) && !source.file.startsWith('src/config/') && !allowed.includes(source.file),
  )
  assert.deepEqual(findLines(others, /\bprocess\s*(\.\s*env\b|\[\s*['"]env)|from 'node:process'/), [])
})

test('only the driver makes connections to Postgres, so that every password and certificate goes the same way', () => {
  // The other one makes none: it counts what those of the driver are asked.
  const allowed = ['lib/postgres/driver.ts', 'bench/kit/server-cost.ts']
  const others = sources.filter(({ file }) => !allowed.includes(file))
  assert.deepEqual(
    findLines(others, /import \{[^}]*(?<!type )\b(Client|Pool)\b[^}]*\} from 'pg'|connectionStrin[g]/),
    [],
  )
})

test('nothing below the entry points ends the process', () => {
  const entries = ['src/bin.ts', 'engine/threads/engine-process.ts']
  const others = sources.filter((source) => isOwn(source) && !isTest(source) && !entries.includes(source.file))
  assert.deepEqual(findLines(others, /\bprocess\.exit\(/), [])
})

test('no enum, no namespace, no any, no default export in the service', () => {
  const own = sources.filter(isOwn)
  assert.deepEqual(findLines(own, /^\s*(export\s+)?(declare\s+)?(const\s+)?(enum|namespace)\s+\w/), [])
  assert.deepEqual(findLines(own, /(:\s*any\b(?!\w)|<any>|\bas any\b|\bany\[\])/), [])
  assert.deepEqual(findLines(own, /^export default\b/), [])
})

test('no file has grown beyond one idea', (t) => {
  const sizes = sources.map(({ file, text }) => ({ file, lines: text.split('\n').length - 1 }))
  for (const { file, lines } of sizes) {
    if (lines > WARN_LINES && lines <= MAX_LINES) t.diagnostic(`${file} has ${lines} lines: time to split it`)
  }
  assert.deepEqual(
    sizes.filter(({ lines }) => lines > MAX_LINES),
    [],
  )
})

test('no file or folder has a name without meaning', () => {
  const vague = sources.filter(({ file }) => /(^|\/)(utils?|helpers?|common|misc|types)(\.ts|\/)/.test(file))
  assert.deepEqual(
    vague.map(({ file }) => file),
    [],
  )
})

test('nothing refers to the machine that it was written on', () => {
  const documents = readSources(
    '*.md',
    'docs/**/*.md',
    'deploy/**/*.{md,yaml,service,conf}',
    'examples/**/*.json',
    'spec/*.json',
    'scripts/*.js',
    'migrations/**/*.sql',
    '*.json',
  )
  const found = [...sources, ...documents].flatMap(({ file, text }) =>
    OUTSIDE_WORDS.filter((word) => text.includes(word)).map((word) => `${file} contains ${word}`),
  )
  assert.deepEqual(found, [])
})

test('the checks that the compiler and the linter make are switched on', () => {
  const compiler = readFileSync(path.join(project, 'tsconfig.json'), 'utf8')
  for (const option of ['strict', 'erasableSyntaxOnly', 'verbatimModuleSyntax', 'noUnusedLocals']) {
    assert.match(compiler, new RegExp(`"${option}": true`))
  }
  assert.match(readFileSync(path.join(project, 'biome.json'), 'utf8'), /"noExplicitAny": "error"/)
})

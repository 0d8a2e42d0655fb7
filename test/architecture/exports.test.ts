import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findDeadExports } from './exports.ts'
import { isTest, readSources, type Source } from './sources.ts'

/** What the package exports, and what is found by its name at start-up. */
const DOORS = [
  'engine/index.ts',
  'engine/custom/nodes-api.ts',
  'src/surfaces/legacy-v1/index.ts',
  'src/surfaces/partner-nodes/index.ts',
  'src/surfaces/console/index.ts',
  'src/surfaces/mcp/index.ts',
  'src/surfaces/images-v1/index.ts',
  'src/surfaces/chat-v1/index.ts',
  'src/surfaces/replicate-v1/index.ts',
  'src/surfaces/share/index.ts',
  'src/surfaces/deploy-v1/index.ts',
  'src/surfaces/builder-v1/index.ts',
]

test('every export is imported by somebody', () => {
  const everybody = readSources(
    ...['lib', 'engine', 'src', 'test', 'bench', 'scripts', 'client/generate'].map((name) => `${name}/**/*.ts`),
  )
  const owners = everybody.filter(
    (source) => /^(lib|engine|src)\//.test(source.file) && !isTest(source) && !DOORS.includes(source.file),
  )
  assert.deepEqual(findDeadExports(owners, everybody), [])
})

test('an unused export is found, however its neighbours are imported', () => {
  const source = (file: string, text: string): Source => ({ file, text, imports: [] })
  const owner = source(
    'lib/a.ts',
    'export const one = 1\nexport function two() {}\nexport interface Three {}\nexport type Four = 4\nexport class Five {}\n',
  )
  const users = [
    source('lib/b.ts', "import { one, type Three as Drei } from './a.ts'\n"),
    source('test/c.ts', `const { two } = await ${'import'}('../lib/a.ts')\n`),
    source('test/d.ts', "export { Four } from '../lib/a.ts'\n"),
  ]
  assert.deepEqual(findDeadExports([owner], [owner, ...users]), ['lib/a.ts: Five'])
  const whole = source('test/e.ts', "import * as all from '../lib/a.ts'\n")
  assert.deepEqual(findDeadExports([owner], [owner, whole]), [])
})

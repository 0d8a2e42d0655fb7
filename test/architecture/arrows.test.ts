import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { findCycle, layerOf, refuseArrow } from './arrows.ts'
import { isTest, project, readSources } from './sources.ts'

const sources = readSources('lib/**/*.ts', 'engine/**/*.ts', 'src/**/*.ts')
const ownFiles = sources.filter((source) => !isTest(source))

test('every import follows the rules of the architecture', () => {
  const wrong = ownFiles.flatMap(({ file, imports }) =>
    imports.flatMap((to) => {
      const reason = to.file !== null ? refuseArrow(file, to.file) : null
      return reason === null ? [] : [`${file} -> ${to.file}: ${reason}`]
    }),
  )
  assert.deepEqual(wrong, [])
})

test('the console is a house of its own: it imports itself and, of the ground, how numbers are read exactly', () => {
  const page = readSources('console/src/**/*.{ts,tsx}')
  assert.ok(page.length > 50, 'its sources were found')
  const wrong = page.flatMap(({ file, imports }) =>
    imports.flatMap((to) => {
      const isOwn = to.file === null || to.file.startsWith('console/src/') || to.file.startsWith('lib/json/')
      return isOwn ? [] : [`${file} -> ${to.file}`]
    }),
  )
  assert.deepEqual(wrong, [])
  const own = page.map(({ file, imports }) => [file, imports.flatMap((to) => to.file ?? [])] as const)
  assert.equal(findCycle(new Map(own)), null)
  const back = sources.filter(({ imports }) => imports.some((to) => to.file?.startsWith('console/') === true))
  assert.deepEqual(back, [])
})

test('the rules refuse forbidden imports', () => {
  const refused: [string, string][] = [
    ['src/domain/jobs/a.ts', 'src/surfaces/kit/b.ts'],
    ['src/domain/jobs/a.ts', 'src/adapters/blobs/fs/fs-blobs.ts'],
    ['src/domain/jobs/a.ts', 'src/config/config.ts'],
    ['src/domain/workflows/a.ts', 'src/domain/engine/b.ts'],
    ['src/domain/jobs/a.ts', 'src/domain/models/b.ts'],
    ['src/domain/jobs/a.ts', 'src/domain/store.ts'],
    ['src/domain/idempotency/a.ts', 'src/domain/assets/b.ts'],
    ['src/surfaces/jobs-v2/a.ts', 'src/surfaces/legacy-v1/b.ts'],
    ['src/surfaces/jobs-v2/a.ts', 'src/surfaces/server.ts'],
    ['src/surfaces/kit/a.ts', 'src/surfaces/jobs-v2/b.ts'],
    ['src/surfaces/jobs-v2/a.ts', 'src/adapters/store/sqlite/b.ts'],
    ['src/adapters/store/sqlite/a.ts', 'src/adapters/blobs/fs/fs-blobs.ts'],
    ['src/app.ts', 'src/adapters/blobs/fs/fs-blobs.ts'],
    ['src/listeners/open-http.ts', 'src/adapters/blobs/fs/fs-blobs.ts'],
    ['src/compose/a.ts', 'src/listeners/open-http.ts'],
    ['src/open-http.ts', 'src/surfaces/server.ts'],
    ['src/cli/serve/serve.ts', 'src/adapters/blobs/fs/fs-blobs.ts'],
    ['src/cli/serve/serve.ts', 'src/surfaces/server.ts'],
    ['lib/a.ts', 'src/domain/errors.ts'],
    ['src/config/a.ts', 'src/domain/errors.ts'],
    ['lib/a.ts', 'engine/graph/graph.ts'],
    ['engine/run/a.ts', 'src/domain/errors.ts'],
    ['engine/graph/a.ts', 'engine/run/b.ts'],
    ['src/domain/jobs/a.ts', 'engine/index.ts'],
    ['src/adapters/engines/embedded/a.ts', 'engine/run/b.ts'],
    ['src/surfaces/jobs-v2/a.ts', 'engine/index.ts'],
  ]
  for (const [from, to] of refused) assert.notEqual(refuseArrow(from, to), null, `${from} -> ${to}`)
  const allowed: [string, string][] = [
    ['src/bin.ts', 'src/cli/main.ts'],
    ['src/domain/jobs/a.ts', 'engine/graph/graph.ts'],
    ['src/adapters/engines/embedded/a.ts', 'engine/index.ts'],
    ['src/cli/a.ts', 'engine/index.ts'],
    ['engine/run/a.ts', 'engine/graph/b.ts'],
    ['engine/graph/a.ts', 'lib/b.ts'],
    ['src/app.ts', 'src/listeners/open-http.ts'],
    ['src/listeners/open-http.ts', 'src/surfaces/server.ts'],
    ['src/surfaces/server.ts', 'src/surfaces/jobs-v2/index.ts'],
    ['src/surfaces/jobs-v2/a.ts', 'src/surfaces/kit/b.ts'],
    ['src/compose/a.ts', 'src/adapters/blobs/fs/fs-blobs.ts'],
    ['src/domain/jobs/a.ts', 'src/domain/engine/b.ts'],
    ['src/domain/store.ts', 'src/domain/jobs/b.ts'],
    ['src/domain/assets/a.ts', 'src/domain/idempotency/b.ts'],
  ]
  for (const [from, to] of allowed) assert.equal(refuseArrow(from, to), null, `${from} -> ${to}`)
})

test('there is no import cycle', () => {
  const graph = new Map(ownFiles.map(({ file, imports }) => [file, imports.flatMap((to) => to.file ?? [])]))
  assert.equal(findCycle(graph)?.join(' -> ') ?? null, null)
  const planted = new Map([
    ['a', ['b']],
    ['b', ['c']],
    ['c', ['b']],
  ])
  assert.deepEqual(findCycle(planted), ['b', 'c', 'b'])
})

test('every relative import names a file that exists, with its ending', () => {
  const missing = readSources(
    'lib/**/*.ts',
    'engine/**/*.ts',
    'src/**/*.ts',
    'test/**/*.ts',
    'scripts/**/*.ts',
    'bench/**/*.ts',
  ).flatMap(({ file, imports }) =>
    imports
      .filter((to) => to.file !== null && !existsSync(path.join(project, to.file)))
      .map((to) => `${file} -> ${to.specifier}`),
  )
  assert.deepEqual(missing, [])
})

test('every source file belongs to a known layer', () => {
  assert.deepEqual(
    sources.filter(({ file }) => layerOf(file) === null).map(({ file }) => file),
    [],
  )
})

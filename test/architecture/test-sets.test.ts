/** No test file is left out of the runs, and none runs twice where it need not. */
import assert from 'node:assert/strict'
import { globSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { allBatches, type Batch, quickBatches } from '../../scripts/test-sets.ts'

const project = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))))
const filesOf = (batches: readonly Batch[]) => batches.flatMap(({ files }) => files)

test('`npm run test:all` runs every test file once, and some once more on Postgres', () => {
  const every = globSync('**/*.test.ts', { cwd: project, exclude: ['node_modules', 'dist', 'build'] })
  const batches = allBatches(project)
  const isOnPostgres = ({ env }: Batch) => env?.['ATELIER_TEST_STORE'] === 'postgres'
  assert.deepEqual(filesOf(batches.filter((batch) => !isOnPostgres(batch))).toSorted(), every.toSorted())
  const again = filesOf(batches.filter(isOnPostgres))
  assert.equal(new Set(again).size, again.length)
  assert.ok(again.length > 0)
})

test('`npm test` runs a part of them, each once', () => {
  const quick = filesOf(quickBatches(project))
  const every = new Set(filesOf(allBatches(project)))
  assert.equal(new Set(quick).size, quick.length)
  assert.deepEqual(
    quick.filter((file) => !every.has(file)),
    [],
  )
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBareDatabase } from '../support/postgres/test-database.ts'
import { moveWithKills } from './move-kills.ts'

test('a move that is killed twice on its way is complete and equal in the end', async () => {
  await using database = await createBareDatabase()
  const said = await moveWithKills({ url: database.url, jobs: 3000, files: 20, fileBytes: 100_000, kills: 2 })
  assert.match(said, /job +3000 rows, the same on both sides/)
  assert.match(said, /output +3000 rows, the same on both sides/)
  assert.match(said, /bytes +20 files, 1\.9 MiB, each read and compared/)
})

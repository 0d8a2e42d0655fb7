/**
 * What belongs to a request is gone after a short garbage collection. Kept alive until a full one, it would make the short ones stop the service ten times
 * as long (decision 0073).
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { isOnPostgres } from '../../support/app/test-store.ts'

const PROGRAM = fileURLToPath(new URL('../../support/app/kept-bytes.ts', import.meta.url))
// Five to ten thousand before, and more than forty on Postgres.
const MAX_KEPT_BYTES = isOnPostgres ? 5000 : 2500

async function measureKept(what: 'submit' | 'route'): Promise<number> {
  // With it, the program would report to the test runner on its output.
  const { NODE_TEST_CONTEXT, ...env } = process.env
  const { stdout } = await promisify(execFile)(process.execPath, [PROGRAM, what], { env })
  return Number(stdout)
}

test('a submit leaves next to nothing for a full collection', async () => {
  const kept = await measureKept('submit')
  assert.ok(kept < MAX_KEPT_BYTES, `${kept} bytes`)
})

test('nor does a routed call', async () => {
  const kept = await measureKept('route')
  assert.ok(kept < MAX_KEPT_BYTES, `${kept} bytes`)
})

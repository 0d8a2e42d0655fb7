/**
 * What belongs to a request is gone after a short garbage collection. Kept alive until a full one, it would make the short ones stop the service ten times
 * as long (decision 0073).
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const PROGRAM = fileURLToPath(new URL('../../support/app/kept-bytes.ts', import.meta.url))
// Five to ten thousand before.
const MAX_KEPT_BYTES = 2500

async function measureKept(what: 'submit' | 'route'): Promise<number> {
  const { stdout } = await promisify(execFile)(process.execPath, [PROGRAM, what])
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

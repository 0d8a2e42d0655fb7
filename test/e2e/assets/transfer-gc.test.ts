/** Whether the bytes that pass through the service make it ask for minor collections. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestApp } from '../../support/app/start-app.ts'
import { CheckedClient, type WireAsset } from '../../support/clients/checked-client.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'

const MIB = 1024 * 1024

/** Answers with how many collections were asked for after each step. */
async function countCollections() {
  let collections = 0
  const overrides = { engine: createFakeEngine(), collectMinor: () => collections++ }
  await using service = await startTestApp({ overrides })
  const client = new CheckedClient(service.url)
  const uploaded = await client.upload('large.bin', Buffer.alloc(20 * MIB))
  assert.equal(uploaded.status, 201)
  const afterUpload = collections
  const { id } = uploaded.json as WireAsset
  const { bytes } = await client.call(`/api/v2/assets/${id}/content`)
  assert.equal(bytes.length, 20 * MIB)
  const afterDownload = collections
  for (let sent = 0; sent < 2; sent++) {
    const body = JSON.stringify({ not: 'a workflow', text: 'x'.repeat(10 * MIB) })
    assert.equal((await client.call('/api/v2/jobs', { method: 'POST', body })).status, 422)
  }
  return { afterUpload, afterDownload, afterBodies: collections }
}

test('uploads, downloads and bodies in memory count', async () => {
  assert.deepEqual(await countCollections(), { afterUpload: 1, afterDownload: 2, afterBodies: 3 })
})

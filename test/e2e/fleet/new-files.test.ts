/** Files that are put on a running server: they are known when somebody needs them, and not minutes later. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pictureGraph, startFleetApp } from '../../support/app/fleet-app.ts'
import { ADMIN_TOKEN } from '../../support/app/join-worker.ts'
import { call } from '../../support/clients/call.ts'
import { LONG_MS } from '../../support/engines/comfy-test-bounds.ts'

/** A server that is not asked what it has, unless somebody wants to know. */
function startServer(adminToken?: string) {
  const bounds = { probeEveryMs: LONG_MS, catalogMinMs: LONG_MS, catalogEveryMs: LONG_MS }
  return startFleetApp({ servers: [{ checkpoints: ['old.safetensors'] }], bounds, adminToken })
}

const post = (url: string, workflow: object) =>
  call(url, '/api/v2/jobs', { method: 'POST', body: JSON.stringify({ workflow }) })

test('a submit that needs a file which was put on the server a moment ago is accepted', async () => {
  await using app = await startServer()
  app.fakes[0].install({ checkpoints: ['old.safetensors', 'new.safetensors'] })
  const { status, json } = await post(app.url, pictureGraph(1, 'new.safetensors'))
  assert.equal(status, 201, JSON.stringify(json))
  await app.until(json.id, 'succeeded')
})

test('a flood of graphs that nobody can run asks the server once, and each is refused', async () => {
  await using app = await startServer()
  const before = app.fakes[0].asked('/object_info')
  const answers = await Promise.all(
    Array.from({ length: 30 }, (_, index) => post(app.url, pictureGraph(index, `missing-${index}.safetensors`))),
  )
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([422]))
  assert.ok(app.fakes[0].asked('/object_info') - before <= 2)
})

test('an editor that reads its node definitions again sees the new file', async () => {
  await using app = await startServer()
  app.fakes[0].install({ checkpoints: ['new.safetensors'] })
  const { json } = await call(app.url, '/api/object_info')
  assert.deepEqual(json.CheckpointLoaderSimple.input.required.ckpt_name[0], ['new.safetensors'])
})

test('an operator has the servers asked', async () => {
  await using app = await startServer(ADMIN_TOKEN)
  app.fakes[0].install({ checkpoints: ['a.safetensors', 'b.safetensors'] })
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` }
  const asked = await call(app.url, '/admin/v1/engine-catalog/refresh', { method: 'POST', headers })
  assert.deepEqual([asked.status, asked.json.engines[0].weights], [200, 2])
})

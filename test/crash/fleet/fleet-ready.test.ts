/** The service is killed while trivial jobs lie ready on a ComfyUI server, which works on them without a pause. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { readPromptId } from '../../../src/adapters/engines/comfyui/run/comfy-prompt.ts'
import { pictureGraph } from '../../support/app/fleet-app.ts'
import { spawnServer } from '../../support/app/spawn-server.ts'
import { CheckedClient } from '../../support/clients/checked-client.ts'
import { startFakeComfy } from '../../support/engines/fake-comfyui/fake-comfyui.ts'
import { toPng } from '../../support/engines/fake-comfyui/picture.ts'
import { waitUntil } from '../../support/wait-until.ts'

const JOBS = 60
const KILLS_AFTER = [15, 30]

test('every job ends once with its own picture, and only what a kill cut off is computed again', async () => {
  await using opened = new AsyncDisposableStack()
  const dataDir = await mkdtemp(join(tmpdir(), 'atelier-fleet-ready-'))
  opened.defer(() => rm(dataDir, { recursive: true, force: true }))
  const fake = opened.use(await startFakeComfy())
  const flags = ['--data-dir', dataDir, '--comfyui', fake.url.href]
  let server = opened.use(await spawnServer(flags))
  const submitting = new CheckedClient(server.url)
  const ids: string[] = []
  for (let color = 0; color < JOBS; color += 1) ids.push((await submitting.accepted(pictureGraph(color))).id)
  for (const count of KILLS_AFTER) {
    await waitUntil(() => fake.executions.length >= count)
    await server.killNow()
    server = opened.use(await spawnServer(flags))
  }
  const client = new CheckedClient(server.url)
  for (const [color, id] of ids.entries()) {
    const { outputs } = await client.untilStatus(id, 'succeeded')
    assert.equal(outputs.length, 1)
    const { bytes } = await client.call(`/api/v2/assets/${outputs[0].id}/content`)
    assert.deepEqual(bytes, toPng({ width: 8, height: 8, color }))
  }
  const begun = ids.map((id) => fake.executions.filter(({ promptId }) => readPromptId(promptId, id) !== null).length)
  assert.ok(
    begun.every((times) => times >= 1 && times <= 1 + KILLS_AFTER.length),
    begun.join(),
  )
  // One runs at a time, and what lies ready is at most eight jobs.
  assert.ok(fake.executions.length <= JOBS + 9 * KILLS_AFTER.length, String(fake.executions.length))
  assert.equal(fake.queue().remaining(), 0)
})

/** The service itself is killed while a ComfyUI server has its job, at each point of the run, and started again over the same folder. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { readPromptId } from '../../../src/adapters/engines/comfyui/run/comfy-prompt.ts'
import { pictureGraph } from '../../support/app/fleet-app.ts'
import { spawnServer } from '../../support/app/spawn-server.ts'
import { CheckedClient } from '../../support/clients/checked-client.ts'
import { startFakeComfy } from '../../support/engines/fake-comfyui/fake-comfyui.ts'
import { toPng } from '../../support/engines/fake-comfyui/picture.ts'
import { PHASES } from '../../support/engines/fleet-faults/row.ts'

const COLOR = 0x123456

describe('a service that is killed while its server has a job', { concurrency: 3 }, () => {
  for (const phase of PHASES) {
    test(`${phase}: the next process takes the run on, and nothing is computed twice`, async () => {
      await using opened = new AsyncDisposableStack()
      const dataDir = await mkdtemp(join(tmpdir(), 'atelier-fleet-service-'))
      opened.defer(() => rm(dataDir, { recursive: true, force: true }))
      const fake = opened.use(await startFakeComfy())
      const flags = ['--data-dir', dataDir, '--comfyui', fake.url.href]
      const first = opened.use(await spawnServer(flags))
      fake.hold(phase)
      const { id } = await new CheckedClient(first.url).accepted(pictureGraph(COLOR))
      await fake.held(phase)
      await first.killNow()
      const client = new CheckedClient(opened.use(await spawnServer(flags)).url)
      fake.release(phase)
      const job = await client.untilStatus(id, 'succeeded')
      const { bytes } = await client.call(`/api/v2/assets/${job.outputs[0].id}/content`)
      assert.equal(job.outputs.length, 1)
      assert.deepEqual(bytes, toPng({ width: 8, height: 8, color: COLOR }))
      const begun = fake.executions.map(({ promptId }) => readPromptId(promptId, id)?.attempt)
      assert.deepEqual(begun, [1])
      assert.equal(fake.queue().remaining(), 0)
    })
  }
})

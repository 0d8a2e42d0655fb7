/** The official client, unmodified, over a fleet of ComfyUI servers. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import * as sdk from '@comfyorg/sdk'
import { type FleetApp, pictureGraph, startFleetApp } from '../../support/app/fleet-app.ts'
import { call } from '../../support/clients/call.ts'
import { comfy } from '../../support/clients/comfy-client.ts'

const COPY = {
  '1': { class_type: 'LoadImage', inputs: { image: '' } },
  '2': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'copy' } },
}

describe('the official SDK over a fleet', () => {
  let app: FleetApp
  let client: sdk.Comfy

  before(async () => {
    app = await startFleetApp({ servers: [{ checkpoints: ['a.safetensors'] }, { checkpoints: ['a.safetensors'] }] })
    client = comfy(app.url)
  })
  after(() => app[Symbol.asyncDispose]())

  test('uploads an asset, runs a workflow on it and downloads the result', async () => {
    const workflow = client.workflows.fromJson(structuredClone(COPY))
    const picture = client.assets.fromBytes(new Uint8Array([1, 2, 3]), { filename: 'in.png', contentType: 'image/png' })
    workflow.setInput('1', 'image', picture)
    const job = await client.run(workflow)
    assert.equal(job.status, 'succeeded')
    const [output] = job.getOutputs('2')
    assert.equal(output.type, 'image')
    assert.match(output.name, /^copy_\d{5}_\.png$/)
    assert.ok((await output.toBytes()).length > 0)
  })

  test('streams status and progress, and the output before the end', async () => {
    const job = await client.submit(client.workflows.fromJson(pictureGraph(1)))
    const kinds: string[] = []
    for await (const event of job.events()) kinds.push(event.kind)
    assert.ok(kinds.includes('outputReady'))
    assert.equal(kinds.at(-1), 'statusChange')
    assert.equal((await client.jobs.get(job.id)).status, 'succeeded')
  })

  test('refuses in the words that the client has classes for', async () => {
    const wrong = client.workflows.fromJson(pictureGraph(1, 'nobody.safetensors'))
    await assert.rejects(client.submit(wrong), (error: unknown) => {
      assert.ok(error instanceof sdk.ComfyError)
      assert.match(String(error), /nobody\.safetensors/)
      return true
    })
  })

  test('cancels, lists, and shows workflow and logs', async () => {
    const graph = {
      '1': { class_type: 'DemoSteps', inputs: { steps: 100_000, ms: 10, preview: false } },
      '2': { class_type: 'DemoPrint', inputs: { image: ['1', 0], text: 'printed by a node' } },
      '3': { class_type: 'SaveImage', inputs: { images: ['2', 0], filename_prefix: 'x' } },
    }
    const job = await client.submit(client.workflows.fromJson(graph))
    await app.until(job.id, 'running')
    await job.cancel()
    await app.until(job.id, 'canceled')
    const quick = { ...graph, '1': { class_type: 'DemoSteps', inputs: { steps: 2, ms: 1, preview: false } } }
    const done = await client.run(client.workflows.fromJson(quick))
    const { json: logs } = await call(app.url, `/api/v2/jobs/${done.id}/logs`)
    assert.match(logs.text, /printed by a node/)
    const { json: read } = await call(app.url, `/api/v2/jobs/${done.id}/workflow`)
    assert.equal(read.format, 'api')
    const { json: list } = await call(app.url, '/api/v2/jobs?status=succeeded,canceled&limit=2')
    assert.deepEqual(
      list.jobs.map(({ id }: { id: string }) => id),
      [done.id, job.id],
    )
  })
})

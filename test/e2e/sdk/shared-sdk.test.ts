/** The official TypeScript client, unmodified, with a key of an account, at the address of a deployment. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import * as sdk from '@comfyorg/sdk'
import { type SharedApp, startShared, type Tenant } from '../../support/app/start-shared.ts'
import { comfy } from '../../support/clients/comfy-client.ts'

let app: SharedApp
let tenant: Tenant
before(async () => {
  app = await startShared({ kind: 'serverless' })
  tenant = await app.account('team-a', { concurrentJobs: 2 })
  await app.admin('POST', '/deployments', { id: 'demo', workers: 2 })
  await app.untilDeployment('demo', 'ready')
})
after(() => app[Symbol.asyncDispose]())

const GRAPH = {
  '1': { class_type: 'FakeLoad', inputs: { image: '' } },
  '2': { class_type: 'FakeSave', inputs: { text: 'result', count: 1 } },
}

describe('the official SDK', () => {
  test('uploads, runs, follows and downloads through signed addresses', async () => {
    const client = comfy(`${app.url}/deployment/demo`, { apiKey: tenant.key })
    const workflow = client.workflows.fromJson(GRAPH)
    workflow.setInput(
      '1',
      'image',
      client.assets.fromBytes(new TextEncoder().encode('input bytes'), { filename: 'in.png' }),
    )
    const job = await client.run(workflow)
    assert.equal(job.status, 'succeeded')
    const [output] = job.getOutputs('2')
    const bytes = Buffer.from(await output.toBytes())
    assert.equal(bytes.length, output.sizeBytes)
    const { url, expiresAt } = await output.getDownloadUrl()
    assert.match(url, /\/deployment\/demo\/content\//)
    const inHours = ((expiresAt?.getTime() ?? 0) - Date.now()) / 3_600_000
    assert.ok(inHours > 23 && inHours <= 24, `the client read the expiry: ${expiresAt}`)
    assert.deepEqual(Buffer.from(await (await fetch(url)).arrayBuffer()), bytes)
  })

  test('is told by typed errors that a key is wrong and that a deployment was stopped', async () => {
    const stranger = comfy(app.url, { apiKey: 'atl_not_a_key' })
    await assert.rejects(stranger.run(stranger.workflows.fromJson(GRAPH)), sdk.Unauthorized)
    await app.admin('POST', '/deployments', { id: 'ended', workers: 1 })
    await app.admin('POST', '/deployments/ended/stop', { now: true })
    const client = comfy(`${app.url}/deployment/ended`, { apiKey: tenant.key })
    const save = client.workflows.fromJson({ '2': GRAPH['2'] })
    await assert.rejects(client.run(save), (error: { code?: string }) => error.code === 'deployment_stopped')
  })
})

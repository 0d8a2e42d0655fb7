/** A deployment that only joined workers serve. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodeDefinition } from '../../../engine/graph/node-catalog.ts'
import { startShared } from '../../support/app/start-shared.ts'
import { INFO, WorkerClient } from '../../support/clients/worker-client.ts'
import { waitUntil } from '../../support/wait-until.ts'

const OWN = { OfFaces: INFO['FakeSave'] as NodeDefinition }

test('a deployment becomes ready with its first joined worker, takes what that can run, and gives it the jobs', async () => {
  await using app = await startShared(
    { kind: 'serverless', deploymentsDomain: 'example.test', joins: 'on' },
    { overrides: { engines: [] } },
  )
  const tenant = await app.account('tenant')
  assert.equal((await app.admin('POST', '/deployments', { id: 'faces', account_id: 'tenant', workers: 0 })).status, 201)
  const made = await app.admin('POST', '/workers/keys', { pools: ['faces'] })
  const worker = new WorkerClient(app.url, made.json.text)
  const submit = (classType: string) =>
    tenant.call('/deployment/faces/api/v2/jobs', {
      method: 'POST',
      body: JSON.stringify({ workflow: { '1': { class_type: classType, inputs: {} } } }),
    })
  assert.match((await submit('OfFaces')).text, /deployment_not_ready/)
  assert.equal((await worker.publishClasses(OWN)).status, 200)
  const beat = { version: '1', host: 'gpu', live_node: null, workers: { faces: 1 } }
  assert.equal((await worker.ask('POST', '/beats', beat)).status, 200)
  await app.untilDeployment('faces', 'ready')
  const pools = (await app.admin('GET', '/pools')).json.pools as { pool: string; workers: number }[]
  assert.equal(pools.find(({ pool }) => pool === 'faces')?.workers, 1)
  const accepted = await waitUntil(async () => {
    const answer = await submit('OfFaces')
    return answer.status === 201 ? answer : null
  })
  assert.equal((await submit('FakeSave')).status, 422, 'no engine of this deployment has it')
  const claim = await worker.claim({ pool: 'faces', wait_ms: 10_000 })
  assert.deepEqual([claim.status, claim.json?.job.id], [200, accepted.json.id])
})

/** Deployments on releases: engines are started from a release's folder, and moves to other releases refuse and lose nothing. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deploy, saying, startReleased } from '../../support/deployments/released-app.ts'
import { waitUntil } from '../../support/wait-until.ts'

test('a deployment starts engines of its release, runs jobs on them, moves to the next release and back', async () => {
  await using started = await startReleased()
  const { app, releases } = started
  const tenant = await app.account('ana')
  const one = releases.add({ version: 1, accountId: 'ana' })
  const two = releases.add({ version: 2, accountId: 'ana' })
  const deployed = await deploy(tenant, one.id)
  const ready = await deployed.until(({ status }) => status === 'ready')
  assert.equal(ready.name, 'production')
  assert.equal(ready.revision, 1)
  assert.equal(ready.endpointUrl, `${app.url}/deployment/${deployed.id}`)

  const first = await deployed.submit(saying('first'))
  assert.equal(first.status, 201, first.text)
  assert.equal(first.json.release_version, 1)
  await waitUntil(async () => (await tenant.call(`/api/v2/jobs/${first.json.id}`)).json.status === 'succeeded')

  const staging = { modelsDone: 1, modelsTotal: 3, bytesDone: 40, bytesTotal: 100, currentModel: 'b.safetensors' }
  releases.stage(two.id, staging)
  const moved = await deployed.call('PATCH', '', { baseRevision: 1, releaseId: two.id })
  assert.equal(moved.status, 202, moved.text)
  assert.equal(moved.json.pendingUpdate.releaseId, two.id)
  const { progress } = await deployed.until((record) => record.progress !== null)
  const { step, startedAt: _startedAt, updatedAt: _updatedAt, attempt: _attempt, ...told } = progress
  assert.deepEqual([step, told], ['staging_models', staging])
  releases.stage(two.id, null)
  const landed = await deployed.until(({ revision }) => revision === 2)
  assert.equal(landed.releaseId, two.id)
  assert.equal(landed.pendingUpdate, null)
  const second = await deployed.submit(saying('second'))
  assert.equal(second.json.release_version, 2)
  await waitUntil(() => two.news().some(({ what }) => what === 'ended'))

  const back = await deployed.call('POST', '/rollback', { baseRevision: 2 })
  assert.equal(back.status, 202, back.text)
  const third = await deployed.until(({ revision }) => revision === 3)
  assert.equal(third.releaseId, one.id)
  const { items } = (await deployed.call('GET', '/revisions')).json
  assert.deepEqual(
    items.map(({ revision, kind, fromRevision }: Record<string, unknown>) => [revision, kind, fromRevision ?? null]),
    [
      [1, 'create', null],
      [2, 'update', null],
      [3, 'rollback', 1],
    ],
  )
  const { events } = (await deployed.call('GET', '/events')).json
  assert.equal(events[0].status, 'queued')
  assert.equal(events.at(-1).status, 'ready')
  assert.match((await deployed.call('GET', '/logs')).json.comfyuiLog, /To see the GUI/)

  assert.equal((await deployed.call('POST', '/stop')).status, 200)
  await deployed.until(({ status }) => status === 'stopped')
  const refused = await deployed.submit(saying('late'))
  assert.equal(refused.status, 422, refused.text)
  assert.equal(refused.json.error.code, 'deployment_stopped')
})

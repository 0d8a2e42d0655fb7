/** A deployment, a release or an update of another account looks exactly like one that never existed, whatever is asked of it. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { CPU, deploy, saying, startReleased } from '../../support/deployments/released-app.ts'

const SPEC = JSON.parse(readFileSync(new URL('../../../spec/deploy-v1.openapi.json', import.meta.url), 'utf8')) as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly operationId?: string }>>>>
}
const NEVER = 'dep-000000000000'
const BODIES: Readonly<Record<string, readonly object[]>> = {
  changeReleasedDeployment: [
    { computeConfig: { ...CPU, min: 0, max: 1 } },
    { name: 'mine' },
    { baseRevision: 1, releaseId: 'rel-build-1-1' },
    { baseRevision: 1, releaseId: 'rel-mine-1' },
  ],
  rollbackReleasedDeployment: [{ baseRevision: 1 }, { baseRevision: 1, toRevision: 1 }],
}
const METHODS = ['get', 'post', 'patch', 'delete'] as const

test('every operation answers for what is not yours as for what never was', async () => {
  await using started = await startReleased()
  const { app, releases } = started
  const [owner, caller] = [await app.account('owner'), await app.account('caller')]
  const theirs = releases.add({ version: 1, accountId: 'owner' })
  const mine = releases.add({ version: 1, accountId: 'caller', buildId: 'mine' })
  const deployed = await deploy(owner, theirs.id)
  const own = await deploy(caller, mine.id, { min: 0 })
  await deployed.until(({ status }) => status === 'ready')
  await own.until(({ status }) => status === 'ready')
  const before = await deployed.get()

  const asked: string[] = []
  async function compare(method: string, path: (id: string) => string, body: ((id: string) => object) | null) {
    const ask = (id: string) =>
      caller.call(path(id), { method, ...(body !== null && { body: JSON.stringify(body(id)) }) })
    const [foreign, unknown] = [await ask(deployed.id), await ask(NEVER)]
    assert.equal(foreign.status, 404, `${method} ${path(deployed.id)}: ${foreign.text}`)
    assert.deepEqual([foreign.status, foreign.text], [unknown.status, unknown.text])
    assert.equal(foreign.json.error, 'NOT_FOUND')
  }
  for (const [path, operations] of Object.entries(SPEC.paths)) {
    if (!path.includes('{id}')) continue
    for (const method of METHODS) {
      const id = operations[method]?.operationId
      if (id === undefined) continue
      asked.push(id)
      for (const body of BODIES[id] ?? [null])
        await compare(method.toUpperCase(), (named) => path.replace('{id}', named), body === null ? null : () => body)
    }
  }
  assert.equal(asked.length, 10)
  const ownPath = `/deploy/v1/deployments/${own.id}`
  await compare(
    'PATCH',
    () => ownPath,
    (id) => ({ baseRevision: 1, fromDeploymentId: id }),
  )

  for (const releaseId of [theirs.id, 'rel-none']) {
    const created = await caller.call('/deploy/v1/deployments', {
      method: 'POST',
      body: JSON.stringify({ releaseId, computeConfig: { ...CPU, min: 0, max: 1 } }),
    })
    const moved = await caller.call(ownPath, { method: 'PATCH', body: JSON.stringify({ baseRevision: 1, releaseId }) })
    const told = await caller.call(`/deploy/v1/deploy-estimate?releaseId=${releaseId}&gpuClass=cpu&region=local`)
    for (const answer of [created, moved, told])
      assert.deepEqual(answer.json, { error: 'NOT_FOUND', message: 'there is no release with this id' })
  }
  const listed = await caller.call('/deploy/v1/deployments')
  assert.deepEqual(
    listed.json.deployments.map(({ id }: { id: string }) => id),
    [own.id],
  )
  const sent = (id: string) =>
    caller.call(`/deployment/${id}/api/v2/jobs`, { method: 'POST', body: JSON.stringify({ workflow: saying('x') }) })
  const [foreign, unknown] = [await sent(deployed.id), await sent(NEVER)]
  assert.equal(foreign.status, 404)
  assert.deepEqual(foreign.json.error.code, unknown.json.error.code)
  assert.deepEqual(foreign.json.error.message, unknown.json.error.message)
  assert.deepEqual(
    await deployed.get().then(({ serving: _, ...rest }) => rest),
    (({ serving: _, ...rest }) => rest)(before),
  )
})

test('an account that the operator has not named may deploy nothing, and learns nothing', async () => {
  await using started = await startReleased()
  const stranger = await started.app.account('stranger')
  const release = started.releases.add({ version: 1, accountId: 'stranger' })
  const body = JSON.stringify({ releaseId: release.id, computeConfig: { ...CPU, min: 0, max: 1 } })
  for (const [method, path] of [
    ['POST', '/deployments'],
    ['GET', '/deployments'],
    ['GET', `/deployments/${NEVER}`],
    ['DELETE', `/deployments/${NEVER}`],
    ['GET', '/compute-catalog'],
  ] as const) {
    const answer = await stranger.call(`/deploy/v1${path}`, { method, ...(method === 'POST' && { body }) })
    assert.deepEqual([answer.status, answer.json.error], [403, 'FEATURE_NOT_ENABLED'], `${method} ${path}`)
  }
})

/** Endpoints of a deployment on a release: their versions know the release that they were published on, and may be pinned to it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Answer } from '../../support/clients/call.ts'
import { deploy, saying, startReleased } from '../../support/deployments/released-app.ts'

test('a version says which release it was published on and which one is served; a pinned one runs on no other', async () => {
  await using started = await startReleased()
  const { app, releases } = started
  const ana = await app.account('ana')
  const one = releases.add({ version: 1, accountId: 'ana' })
  const two = releases.add({ version: 2, accountId: 'ana' })
  const deployed = await deploy(ana, one.id)
  await deployed.until(({ status }) => status === 'ready')

  const send = (method: string, path: string, body?: object): Promise<Answer> =>
    ana.call(`/api/v2/endpoints${path}`, { method, ...(body !== undefined && { body: JSON.stringify(body) }) })
  const publish = async (name: string, more: object = {}) => {
    const answer = await send('POST', '', { name, file: saying('hello'), deployment: deployed.id, ...more })
    assert.ok(answer.status < 300, answer.text)
    return answer.json
  }
  const run = (reference: string) => send('POST', `/${reference}/runs`, { inputs: {} })
  const releasesOf = async (name: string) => {
    const { versions } = (await send('GET', `/${name}/versions`)).json
    return versions.map(({ version, release }: Answer['json']) => [
      version,
      release.version,
      release.pinned,
      release.served,
    ])
  }

  const first = await publish('loose')
  assert.deepEqual(first.version.release, { deployment: deployed.id, version: 1, pinned: false, served: 1 })
  await publish('fixed', { pin_release: true, callers: ['ben'] })
  for (const name of ['loose', 'fixed']) {
    const { status, json, text } = await run(name)
    assert.deepEqual([status, json.release_version], [201, 1], text)
  }

  assert.equal((await deployed.call('PATCH', '', { baseRevision: 1, releaseId: two.id })).status, 202)
  await deployed.until(({ revision }) => revision === 2)

  // The address goes on, and says what it does.
  assert.deepEqual(await releasesOf('loose'), [[1, 1, false, 2]])
  const moved = await run('loose@1')
  assert.deepEqual([moved.status, moved.json.endpoint.version, moved.json.release_version], [201, 1, 2], moved.text)
  assert.equal((await send('GET', '/loose')).json.state, 'ready')

  // One that is pinned waits for its release, and says so wherever it is asked.
  const missing = { deployment: deployed.id, version: 1, pinned: true, served: 2 }
  const blocked = (await send('GET', '/fixed')).json
  assert.deepEqual([blocked.state, blocked.missing.release], ['blocked', missing])
  assert.deepEqual((await send('GET', '/fixed/versions/1')).json.release, missing)
  const refused = await run('fixed')
  assert.deepEqual([refused.status, refused.json.error.code], [422, 'endpoint_stopped'])
  assert.match(
    refused.json.error.message,
    /version 1 .* release 1 of the deployment dep-\w+ alone.* serves release 2 now/,
  )
  const many = await send('POST', '/fixed/runs/batch', { items: [{}, {}] })
  assert.deepEqual([many.status, many.json.error.code], [422, 'endpoint_stopped'])
  const tried = (await send('POST', '/fixed/runs/validate', { inputs: {} })).json
  assert.deepEqual([tried.is_accepted, tried.complaints[0].code], [false, 'endpoint_stopped'])
  const ben = await app.account('ben')
  const told = await ben.call('/api/v2/endpoints/ana%2Ffixed/runs', { method: 'POST', body: '{"inputs":{}}' })
  assert.equal(told.status, 422)
  assert.doesNotMatch(told.text, /dep-|release/)

  // The same content on the release that is served now is another version; the pinned one stays as it is.
  const again = await publish('fixed', { pin_release: true })
  assert.deepEqual([again.is_new, again.version.version, again.endpoint.state], [true, 2, 'ready'])
  assert.deepEqual(
    again.differences.map(({ kind, breaking }: Answer['json']) => [kind, breaking]),
    [['release', false]],
  )
  assert.equal((await publish('fixed', { pin_release: true })).is_new, false)
  assert.deepEqual(await releasesOf('fixed'), [
    [2, 2, true, 2],
    [1, 1, true, 2],
  ])
  const [now, before] = [await run('fixed'), await run('fixed@1')]
  assert.deepEqual([now.status, now.json.release_version, before.status], [201, 2, 422])

  assert.equal((await deployed.call('POST', '/rollback', { baseRevision: 2 })).status, 202)
  await deployed.until(({ revision }) => revision === 3)
  const back = await run('fixed@1')
  assert.deepEqual([back.status, back.json.release_version], [201, 1], back.text)
  assert.equal((await send('GET', '/fixed')).json.state, 'blocked')

  // An export names no deployment, and what runs elsewhere is on none of its releases.
  assert.equal((await send('GET', '/fixed/export')).json.version.release, undefined)
  await send('PATCH', '/fixed', { deployment: null })
  assert.deepEqual(await releasesOf('fixed'), [
    [2, 2, true, null],
    [1, 1, true, null],
  ])
  assert.match((await run('fixed')).json.error.message, /the endpoint no longer runs there/)
  const nothing = await send('POST', '', { name: 'plain', file: saying('hello'), pin_release: true })
  assert.deepEqual([nothing.status, nothing.json.error.details.field], [422, 'pin_release'], nothing.text)
})

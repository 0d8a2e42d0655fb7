/** Deployments through the whole service: their addresses, their jobs, their life. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { type SharedApp, startShared, type Tenant } from '../../support/app/start-shared.ts'

const SAVE = { '1': { class_type: 'FakeSave', inputs: { text: 'made' } } }
const GATE = { '1': { class_type: 'FakeGate', inputs: {} } }

let app: SharedApp
let tenant: Tenant
before(async () => {
  app = await startShared({
    kind: 'serverless',
    deploymentsDomain: 'example.test',
    publicUrl: 'https://api.example.test',
  })
  tenant = await app.account('team-a', { concurrentJobs: 10, requestsPerMinute: null })
  for (const id of ['one', 'two']) {
    assert.equal((await app.admin('POST', '/deployments', { id, workers: 2 })).status, 201)
    await app.untilDeployment(id, 'ready')
  }
})
after(() => app[Symbol.asyncDispose]())

const submit = (prefix: string, workflow: object = SAVE, headers: Record<string, string> = {}) =>
  tenant.call(`${prefix}/api/v2/jobs`, { method: 'POST', headers, body: JSON.stringify({ workflow }) })

async function runOn(prefix: string): Promise<string> {
  const { status, json, text } = await submit(prefix)
  assert.equal(status, 201, text)
  await tenant.call(json.urls.events)
  return json.id as string
}

describe('an address', () => {
  test('by prefix gives links that carry it and work', async () => {
    const { json: job } = await submit('/deployment/one')
    for (const link of Object.values<string>(job.urls)) assert.match(link, /^\/deployment\/one\/api\/v2\//)
    assert.match((await tenant.call(job.urls.events)).text, /"status":"succeeded"/)
    const { json: ended } = await tenant.call(job.urls.self)
    assert.match(ended.outputs[0].url, /^https:\/\/api\.example\.test\/deployment\/one\/content\//)
    const content = await tenant.call(ended.outputs[0].url.slice('https://api.example.test'.length))
    assert.equal(content.status, 200)
    assert.equal((await tenant.call(job.urls.logs)).status, 204)
    assert.equal((await tenant.call(job.urls.cancel, { method: 'POST' })).status, 200)
  })

  test('by host, with and without the staging label, gives links on that host', async () => {
    for (const host of ['one.run.example.test', 'one.stg.run.example.test', 'one.run.stg.example.test']) {
      const { status, json: job } = await submit('', SAVE, { host })
      assert.equal(status, 201, host)
      assert.match(job.urls.self, /^\/api\/v2\//)
      await tenant.call(job.urls.events, { headers: { host } })
      const { json: ended } = await tenant.call(job.urls.self, { headers: { host } })
      assert.ok(ended.outputs[0].url.startsWith(`https://${host}/content/`), ended.outputs[0].url)
    }
  })

  test('that names no deployment, two, or none of ours is not there', async () => {
    const nowhere = await tenant.call('/deployment/nowhere/api/v2/jobs')
    assert.deepEqual([nowhere.status, nowhere.json.error.code], [404, 'not_found'])
    const host = 'one.run.example.test'
    assert.equal((await tenant.call('/deployment/two/api/v2/jobs', { headers: { host } })).status, 404)
    assert.equal((await tenant.call('/api/v2/jobs', { headers: { host: 'one.run.evil.test' } })).status, 403)
    assert.equal((await app.admin('GET', '/overview')).status, 200)
    assert.equal((await tenant.call('/deployment/one/admin/v1/overview')).status, 404)
    assert.equal((await tenant.call('/deployment/one/api/v2/health')).status, 200)
  })
})

test('lists and shows its own jobs only; the account’s address shows all', async () => {
  const [one, two, common] = [await runOn('/deployment/one'), await runOn('/deployment/two'), await runOn('')]
  const idsAt = async (prefix: string) => {
    const { json } = await tenant.call(`${prefix}/api/v2/jobs?limit=100`)
    return json.jobs.map(({ id }: { id: string }) => id) as string[]
  }
  const [atOne, atTwo, atAll] = [await idsAt('/deployment/one'), await idsAt('/deployment/two'), await idsAt('')]
  assert.ok(atOne.includes(one) && !atOne.includes(two) && !atOne.includes(common))
  assert.ok(atTwo.includes(two) && !atTwo.includes(one))
  assert.ok([one, two, common].every((id) => atAll.includes(id)))
  for (const rest of ['', '/events', '/logs', '/workflow']) {
    assert.equal((await tenant.call(`/deployment/two/api/v2/jobs/${one}${rest}`)).status, 404, rest)
    assert.equal((await tenant.call(`/api/v2/jobs/${one}${rest}`)).status === 404, false, rest)
  }
  assert.equal((await tenant.call(`/deployment/two/api/v2/jobs/${one}/cancel`, { method: 'POST' })).status, 404)
})

test('a page of one address cannot be continued at another', async () => {
  for (let count = 0; count < 3; count++) await runOn('/deployment/one')
  const { json } = await tenant.call('/deployment/one/api/v2/jobs?limit=1')
  const next = (prefix: string) => tenant.call(`${prefix}/api/v2/jobs?limit=1&cursor=${json.next_cursor}`)
  assert.equal((await next('/deployment/one')).status, 200)
  assert.equal((await next('/deployment/two')).json.error.code, 'invalid_cursor')
  assert.equal((await next('')).json.error.code, 'invalid_cursor')
})

describe('a life', () => {
  test('a deployment whose workers are not there refuses with 429 and frees the key; started, it takes the job', async () => {
    await app.admin('POST', '/deployments', { id: 'cold', workers: 0 })
    const headers = { 'idempotency-key': 'cold-1' }
    const refused = await submit('/deployment/cold', SAVE, headers)
    assert.deepEqual(
      [refused.status, refused.json.error.code, refused.headers['retry-after']],
      [429, 'deployment_not_ready', '5'],
    )
    assert.equal(
      (await submit('/deployment/cold', { '1': { class_type: 'Nope' } })).json.error.code,
      'invalid_workflow',
    )
    await app.admin('PATCH', '/deployments/cold', { workers: 1 })
    await app.untilDeployment('cold', 'ready')
    assert.equal((await submit('/deployment/cold', SAVE, headers)).status, 201)
  })

  test('a stopped deployment finishes what it has, refuses with 422, keeps its jobs readable, and can start again', async () => {
    await app.admin('POST', '/deployments', { id: 'ending', workers: 1 })
    await app.untilDeployment('ending', 'ready')
    const { json: held } = await submit('/deployment/ending', GATE)
    const { json: waiting } = await submit('/deployment/ending')
    assert.equal((await app.admin('POST', '/deployments/ending/stop')).json.state, 'draining')
    const refused = await submit('/deployment/ending')
    assert.deepEqual([refused.status, refused.json.error.code], [422, 'deployment_stopped'])
    app.engine.openGate()
    await tenant.call(held.urls.events)
    await tenant.call(waiting.urls.events)
    await app.untilDeployment('ending', 'stopped')
    assert.equal((await tenant.call(waiting.urls.self)).json.status, 'succeeded')
    assert.equal((await submit('/deployment/ending')).json.error.code, 'deployment_stopped')
    await app.admin('POST', '/deployments/ending/start')
    await app.untilDeployment('ending', 'ready')
    assert.equal((await submit('/deployment/ending')).status, 201)
  })

  test('a deployment that sleeps wakes for a job, also after a restart of the service', async () => {
    const own = await startShared({ kind: 'serverless' })
    const owner = await own.account('team-a')
    await own.admin('POST', '/deployments', { id: 'sleepy', workers: 1, idle_after_ms: 1000 })
    await own.untilDeployment('sleepy', 'ready')
    const again = await own.service.restart()
    const headers = { authorization: `Bearer ${owner.key}` }
    const post = { method: 'POST', headers, body: JSON.stringify({ workflow: SAVE }) }
    const made = await fetch(`${again.url}/deployment/sleepy/api/v2/jobs`, post)
    assert.equal(made.status, 201)
    const { urls } = (await made.json()) as { urls: { events: string } }
    const events = await fetch(`${again.url}${urls.events}`, { headers })
    assert.match(await events.text(), /"status":"succeeded"/)
    await again[Symbol.asyncDispose]()
  })
})

test('a hook is told when jobs wait without a worker', async () => {
  const told = Promise.withResolvers<{ event: string; pool: string }>()
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    told.resolve(JSON.parse(body))
    response.writeHead(204).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const poolHook = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  {
    await using own = await startShared({ kind: 'serverless', workers: '0', poolHook })
    const owner = await own.account('team-a')
    await owner.call('/api/v2/jobs', { method: 'POST', body: JSON.stringify({ workflow: SAVE }) })
    const { event, pool } = await told.promise
    assert.deepEqual([event, pool], ['workers_wanted', 'default'])
  }
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

/** Signing out, and what a session counts for. No browser: every header is made here. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startShared } from '../../support/app/start-shared.ts'
import { call } from '../../support/clients/call.ts'
import { openEvents } from '../../support/clients/event-reader.ts'

const SESSION = '/console/v1/session'
const READ = '/api/v2/jobs'

async function signIn(url: string, credential: string): Promise<string> {
  const answer = await call(url, SESSION, { method: 'POST', body: JSON.stringify({ credential }) })
  assert.equal(answer.status, 200, answer.text)
  return String(answer.headers['set-cookie']).split(';')[0] ?? ''
}

test('whoever signs out ends that session in every tab, and no other one of the same key', async () => {
  await using shared = await startShared()
  const { key } = await shared.account('one')
  const [here, there] = [await signIn(shared.url, key), await signIn(shared.url, key)]
  const read = async (cookie: string) => (await call(shared.url, READ, { headers: { cookie } })).status
  assert.deepEqual([await read(here), await read(there)], [200, 200])
  using tab = openEvents(shared.url, '/console/v1/events', { cookie: here })
  assert.equal((await tab.next())?.event, 'hello')
  const own = { 'x-atelier-console': '1', origin: new URL(shared.url).origin }
  const answer = await call(shared.url, SESSION, { method: 'DELETE', headers: { cookie: here, ...own } })
  assert.equal(answer.status, 204)
  assert.deepEqual([await read(here), await read(there)], [401, 200])
  await tab.rest()
})

test('small pictures do not use up the requests of an account', async () => {
  await using shared = await startShared()
  const { key } = await shared.account('hasty', { requestsPerMinute: 1, requestBurst: 2 })
  const cookie = await signIn(shared.url, key)
  const ask = async (path: string) => (await call(shared.url, path, { headers: { cookie } })).status
  const picture = '/console/v1/thumbnails/00000000-0000-7000-8000-000000000000'
  for (let index = 0; index < 5; index += 1) assert.equal(await ask(picture), 404)
  assert.deepEqual([await ask(READ), await ask(READ), await ask(READ)], [200, 200, 429])
})

test('a session says whether its account may make builds and deploy releases', async () => {
  await using shared = await startShared({ builds: 'maker' })
  const featuresOf = async (id: string) => {
    const { key } = await shared.account(id)
    const { json } = await call(shared.url, SESSION, { headers: { cookie: await signIn(shared.url, key) } })
    return [json.features.environments, json.features.deployments]
  }
  // Nothing is built by this process, so nothing can be deployed.
  assert.deepEqual(await featuresOf('maker'), [true, false])
  assert.deepEqual(await featuresOf('other'), [false, false])
})

/** Two nodes of one service on one Postgres: what is changed or done on one holds, and is heard, on the other. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { WebSocket } from 'ws'
import { type SharedApp, startShared, type Tenant } from '../../support/app/start-shared.ts'
import { type Answer, call } from '../../support/clients/call.ts'
import { type EventReader, openEvents } from '../../support/clients/event-reader.ts'
import { isText, openSocket } from '../../support/clients/test-socket.ts'
import { createTestDatabase, type TestDatabase } from '../../support/postgres/test-database.ts'
import { waitUntil } from '../../support/wait-until.ts'

const SECRET_KEY = '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef'
const graph = (classType: string) => ({ '1': { class_type: classType, inputs: {} } })
const submitted = (classType: string) => ({ method: 'POST', body: JSON.stringify({ workflow: graph(classType) }) })
const SESSION = '/console/v1/session'

async function signIn(url: string, credential: string): Promise<string> {
  const answer = await call(url, SESSION, { method: 'POST', body: JSON.stringify({ credential }) })
  assert.equal(answer.status, 200, answer.text)
  return String(answer.headers['set-cookie']).split(';')[0] ?? ''
}

async function signOut(url: string, cookie: string, query = ''): Promise<void> {
  const headers = { cookie, 'x-atelier-console': '1', origin: new URL(url).origin }
  assert.equal((await call(url, `${SESSION}${query}`, { method: 'DELETE', headers })).status, 204)
}

describe('two nodes on one Postgres', () => {
  let database: TestDatabase
  let blobs: string
  let one: SharedApp
  let other: SharedApp
  let tenant: Tenant
  before(async () => {
    database = await createTestDatabase()
    blobs = await mkdtemp(join(tmpdir(), 'atelier-two-blobs-'))
    const settings = {
      database: database.url,
      secretKey: SECRET_KEY,
      kind: 'serverless',
      deploymentsDomain: 'run.test',
    }
    one = await startShared(settings, { dataDir: blobs })
    other = await startShared(settings, { dataDir: blobs })
    tenant = await one.account('acme', { concurrentJobs: 4 })
    await onOther(tenant.key, '/api/v2/jobs', 200)
  })
  after(async () => {
    await Promise.all([one, other].map((app) => app?.[Symbol.asyncDispose]()))
    await database[Symbol.asyncDispose]()
    await rm(blobs, { recursive: true, force: true })
  })

  const callOther = (key: string, path: string, options = {}): Promise<Answer> =>
    call(other.url, path, { ...options, headers: { authorization: `Bearer ${key}` } })

  /** Asks again until the answer has this status: what was changed on one node holds on the other a moment later. */
  async function onOther(key: string, path: string, status: number): Promise<void> {
    while ((await callOther(key, path)).status !== status);
  }

  async function watch(key: string, jobId: string): Promise<EventReader> {
    const reader = openEvents(other.url, `/api/v2/jobs/${jobId}/events`, { Authorization: `Bearer ${key}` })
    assert.match(await reader.head, /^HTTP\/1.1 200 /)
    assert.equal((await reader.next())?.event, 'status')
    return reader
  }

  const newKey = async () => (await one.admin('POST', '/accounts/acme/keys', {})).json as { id: string; text: string }

  test('a stream of a job that runs elsewhere ends with the job', async () => {
    const { json } = await tenant.call('/api/v2/jobs', submitted('FakeGate'))
    using reader = await watch(tenant.key, json.id)
    for (const app of [one, other]) app.engine.openGate()
    const last = (await reader.rest()).filter(({ event }) => event === 'status').at(-1)
    assert.deepEqual((last?.data as { status?: string } | undefined)?.status, 'succeeded')
  })

  test('a key that is revoked on one node ends its streams and sockets on the other', async () => {
    const { json } = await tenant.call('/api/v2/jobs', submitted('FakeHang'))
    const key = await newKey()
    await onOther(key.text, '/api/v2/jobs', 200)
    using reader = await watch(key.text, json.id)
    const socket = await openSocket(new WebSocket(`${other.url.replace('http', 'ws')}/ws?token=${key.text}`))
    await one.admin('POST', `/keys/${key.id}/revoke`)
    assert.deepEqual((await reader.rest()).at(-1), { event: 'comment', data: 'closing' })
    assert.equal(await socket.closed, 1008)
    assert.equal((await callOther(key.text, '/api/v2/jobs')).status, 401)
  })

  test('a run is told on the sockets of the other node, from its first event to its end', async () => {
    const socket = await openSocket(new WebSocket(`${other.url.replace('http', 'ws')}/ws?token=${tenant.key}`))
    const { json } = await tenant.call('/api/v2/jobs', submitted('FakeSave'))
    const ended = await socket.until((frame) => isText(frame, 'executing') && frame.data['node'] === null)
    assert.equal('data' in ended && ended.data['prompt_id'], json.id)
    assert.ok(socket.frames.some((frame) => isText(frame, 'execution_start')))
    await socket.close()
  })

  test('signing out everywhere on one node is not undone by whoever signs out on the other at that moment', async () => {
    const key = (await newKey()).text
    await onOther(key, '/api/v2/jobs', 200)
    for (let round = 0; round < 2; round++) {
      const stolen = await signIn(other.url, key)
      const leaving = await Promise.all(Array.from({ length: 3 }, () => signIn(other.url, key)))
      const everywhere = await signIn(one.url, key)
      await Promise.all([
        signOut(one.url, everywhere, '?everywhere=1'),
        ...leaving.map((cookie) => signOut(other.url, cookie)),
      ])
      // A process may know what it read last for another second.
      for (const { url } of [one, other])
        await waitUntil(async () => (await call(url, '/api/v2/jobs', { headers: { cookie: stolen } })).status === 401)
    }
  })

  test('numbers of prompts rise over both nodes', async () => {
    const numbers: number[] = []
    for (let round = 0; round < 3; round++) {
      for (const app of [one, other]) {
        const answer = await call(app.url, '/prompt', {
          method: 'POST',
          headers: { authorization: `Bearer ${tenant.key}` },
          body: JSON.stringify({ prompt: graph('FakeSave') }),
        })
        numbers.push(answer.json.number)
      }
    }
    assert.deepEqual(
      numbers,
      numbers.map((_, index) => numbers[0] + index),
    )
  })

  test('a deployment that is stopped on one node takes no job on the other', async () => {
    await one.admin('POST', '/deployments', { id: 'demo', workers: 1 })
    await one.untilDeployment('demo', 'ready')
    const submit = () => callOther(tenant.key, '/deployment/demo/api/v2/jobs', submitted('FakeSave'))
    while ((await submit()).status !== 201);
    await one.admin('POST', '/deployments/demo/stop', { now: true })
    const refused = await submit()
    assert.notEqual(refused.status, 201)
    assert.match(refused.text, /deployment_stopped/)
  })

  test('a suspended account is out everywhere', async () => {
    const { json } = await tenant.call('/api/v2/jobs', submitted('FakeHang'))
    using reader = await watch(tenant.key, json.id)
    await one.admin('PATCH', '/accounts/acme', { status: 'suspended' })
    await reader.rest()
    assert.equal((await callOther(tenant.key, '/api/v2/jobs')).status, 403)
  })
})

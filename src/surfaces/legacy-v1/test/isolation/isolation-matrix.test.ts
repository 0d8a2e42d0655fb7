/** The accounts of one service on this surface: its part of the isolation matrix, its sockets, its keys, and deployments. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { WebSocket } from 'ws'
import { testIsolation } from '../../../../../test/isolation/run-matrix.ts'
import { openWorld, type World } from '../../../../../test/isolation/world.ts'
import { call } from '../../../../../test/support/clients/call.ts'
import {
  type Frame,
  isText,
  openSocket,
  type RefusedHandshake,
} from '../../../../../test/support/clients/test-socket.ts'
import { NAMES, toForm } from './foreign-data.ts'
import { legacyV1, OPERATIONS } from './isolation-surface.ts'

let world: World
before(async () => {
  world = await openWorld()
})
after(() => world[Symbol.asyncDispose]())

testIsolation(legacyV1, () => world)

const SAVE = { '1': { class_type: 'FakeSave', inputs: { text: 'x' } } }

const connect = (key: string, clientId: string, options: { path?: string; host?: string } = {}) => {
  const { path = '/ws', host } = options
  const headers = host === undefined ? {} : { host }
  const url = `${world.app.url.replace('http', 'ws')}${path}?token=${key}&clientId=${clientId}`
  return openSocket(new WebSocket(url, { perMessageDeflate: false, headers }))
}

describe('sockets', () => {
  const isEnd = (frame: Frame) => isText(frame, 'executing') && frame.data['node'] === null

  test('the client id of somebody else’s running job opens nothing, and nothing of its account is heard', async () => {
    const { app, caller, other } = world
    const theirs = await connect(caller.key, NAMES.client)
    const nobodys = await connect(caller.key, 'nobody-client')
    const body = JSON.stringify({ prompt: SAVE })
    await app
      .account('loud', { requestsPerMinute: null })
      .then((loud) => loud.call('/prompt', { method: 'POST', body }))
    await other.call('/prompt', { method: 'POST', body })
    // When the end of the caller's own job has arrived, every earlier message has arrived too.
    await caller.call('/prompt', { method: 'POST', body })
    for (const socket of [theirs, nobodys]) await socket.until(isEnd)
    const [heard, expected] = [theirs, nobodys].map(({ frames }) =>
      JSON.stringify(frames).replaceAll(/"sid":"[\w-]+"/g, '"sid":""'),
    )
    assert.equal(heard, expected)
    assert.equal(theirs.frames.filter((frame) => isText(frame, 'execution_start')).length, 1)
    await Promise.all([theirs.close(), nobodys.close()])
  })

  test('the sockets of a key are closed soon after it was revoked', async () => {
    const { app, caller } = world
    const { json } = await app.admin('POST', `/accounts/${caller.id}/keys`, {})
    const [gone, stays] = [await connect(json.text, 'a'), await connect(caller.key, 'b')]
    await app.admin('POST', `/keys/${json.id}/revoke`)
    assert.equal(await gone.closed, 1008)
    assert.equal(stays.ws.readyState, stays.ws.OPEN)
    await stays.close()
  })
})

describe('scopes', () => {
  test('a key may do what its scopes say, on every path and on the socket', async () => {
    const { app, caller } = world
    const withScopes = async (scopes: readonly string[]) =>
      (await app.admin('POST', `/accounts/${caller.id}/keys`, { scopes })).json.text as string
    const [reader, files] = [await withScopes(['jobs:read']), await withScopes(['assets:read', 'assets:write'])]
    const ask = async (key: string, method: string, path: string) =>
      (await call(app.url, path, { method, headers: { 'x-api-key': key }, body: method === 'GET' ? undefined : '{}' }))
        .status
    for (const prefix of ['', '/api']) {
      assert.equal(await ask(reader, 'GET', `${prefix}/history`), 200)
      assert.equal(await ask(reader, 'GET', `${prefix}/object_info`), 200)
      for (const path of ['/prompt', '/queue', '/interrupt', '/history', '/settings'])
        assert.equal(await ask(reader, 'POST', prefix + path), 403, path)
      for (const path of ['/view?filename=x', '/userdata/x', '/settings', '/internal/files/input', '/models/vae'])
        assert.equal(await ask(reader, 'GET', prefix + path), 403, path)
      assert.equal(await ask(files, 'POST', `${prefix}/settings`), 200)
      assert.equal(await ask(files, 'GET', `${prefix}/queue`), 403)
      assert.equal(await ask(files, 'GET', `${prefix}/internal/logs`), 403)
    }
    await assert.rejects(connect(files, 'x'), (error: RefusedHandshake) => error.status === 403)
    await (await connect(reader, 'x')).close()
  })
})

describe('the address of a deployment', () => {
  test('has nothing of this surface, not even for its owner', async () => {
    const { app, other, deployment } = world
    const host = `${deployment}.run.example.test`
    for (const { method, path, isAlsoBare } of OPERATIONS) {
      const filled = path.replaceAll(/\{\w+\}/g, 'x')
      for (const where of isAlsoBare ? [filled, filled.slice('/api'.length)] : [filled]) {
        const below = await other.call(`/deployment/${deployment}${where}`, { method })
        const at = await other.call(where, { method, headers: { host } })
        const unnamed = await call(app.url, `/deployment/nowhere${where}`, { method })
        assert.deepEqual([below.status, at.status, unnamed.status], [404, 404, 404], `${method} ${where}`)
        assert.deepEqual([below.text, at.text], [unnamed.text, unnamed.text])
      }
    }
    const isMissing = (error: RefusedHandshake) => error.status === 404
    await assert.rejects(connect(other.key, 'x', { path: `/deployment/${deployment}/ws` }), isMissing)
    await assert.rejects(connect(other.key, 'x', { path: '/api/ws', host }), isMissing)
  })
})

test('an upload may be as large as the account’s tier allows', async () => {
  const small = await world.app.account('small', { uploadBytes: 10 })
  const send = async (bytes: string) => {
    const { path, ...form } = toForm('/upload/image', bytes, {})
    return (await small.call(path, form)).status
  }
  assert.deepEqual([await send('x'.repeat(10)), await send('x'.repeat(11))], [200, 413])
})

test('a name that an account chose for a job is taken for that account, and for nobody else', async () => {
  const { caller, other } = world
  const body = JSON.stringify({ prompt: SAVE, prompt_id: crypto.randomUUID() })
  const send = ({ call: ask }: typeof caller) => ask('/prompt', { method: 'POST', body })
  const [mine, theirs, again] = [await send(caller), await send(other), await send(caller)]
  assert.deepEqual([mine.status, theirs.status], [200, 200])
  assert.notEqual(mine.json.prompt_id, theirs.json.prompt_id)
  assert.deepEqual([again.status, again.json.error.type], [400, 'invalid_prompt_id'])
  assert.equal((await caller.call(`/api/jobs/${mine.json.prompt_id}`)).status, 200)
  assert.equal((await caller.call(`/api/jobs/${theirs.json.prompt_id}`)).status, 404)
})

/** Two accounts on one service: what belongs to one is not there for the other, on any route. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startTestApp, type TestApp } from '../../../../../test/support/app/start-app.ts'
import { LegacyClient } from '../../../../../test/support/clients/legacy-client.ts'
import { saveGraph } from '../../../../../test/support/clients/legacy-graphs.ts'
import type { Caller } from '../../../../domain/accounts/caller.ts'
import { ServiceError } from '../../../../domain/errors.ts'

/** As on the hosted kinds: a key per account, and bytes behind signed addresses. */
function authenticate(credential: string | null): Caller {
  if (credential !== 'key-a' && credential !== 'key-b')
    throw new ServiceError('unauthorized', 'a valid key is required')
  return { accountId: credential === 'key-a' ? 'a' : 'b', keyId: credential, scopes: null, endpoints: null }
}

describe('two accounts', () => {
  let app: TestApp
  let a: LegacyClient
  let b: LegacyClient
  before(async () => {
    app = await startTestApp({
      overrides: {
        authenticate,
        surfaceParts: (parts) => ({
          ...parts,
          isAtLimit: async () => true,
          content: { servesBytes: false, sign: ({ assetId }) => `/content/${assetId}?signature=x` },
        }),
      },
    })
    for (const id of ['a', 'b']) await app.app.store.accounts.put({ id, maxRunning: 1, maxQueued: 10 })
    a = new LegacyClient(app.url, { 'x-api-key': 'key-a' })
    b = new LegacyClient(app.url, { authorization: 'Bearer key-b' })
  })
  after(() => app[Symbol.asyncDispose]())

  test('see nothing of each other', async () => {
    const id = await a.accepted(saveGraph(1, 'mine'))
    await a.untilHistory(id)
    await a.upload('mine.png', Buffer.from('mine'))
    await a.post('/settings', { mine: 1 })
    await a.call('/userdata/mine.json', { method: 'POST', body: '{}' })
    const empty: [path: string, body: unknown][] = [
      ['/history', {}],
      [`/history/${id}`, {}],
      ['/queue', { queue_running: [], queue_pending: [] }],
      ['/settings', {}],
      ['/v2/userdata', []],
      ['/internal/files/input', []],
      ['/internal/files/output', []],
      ['/internal/logs', ''],
    ]
    for (const [path, body] of empty) assert.deepEqual((await b.get(path)).json, body, path)
    assert.equal((await b.get('/api/jobs')).json.pagination.total, 0)
    const missing = [
      '/api/jobs/ID',
      '/api/jobs/ID/assets',
      '/api/job/ID/status',
      '/history_v2/ID',
      '/userdata/mine.json',
    ]
    const views = ['/view?filename=mine.png&type=input', '/view?filename=mine_00001_.png']
    for (const path of [...missing, ...views]) {
      assert.equal((await b.get(path.replace('ID', id))).status, 404, path)
      const own = await a.get(path.replace('ID', id))
      assert.ok(own.status === 200 || own.status === 302, path)
    }
    assert.equal(
      (
        await b.prompt({
          '1': { class_type: 'LoadImage', inputs: { image: 'mine.png' } },
          '2': { class_type: 'PreviewImage', inputs: { images: ['1', 0] } },
        })
      ).status,
      400,
    )
    assert.deepEqual((await b.post('/queue', { delete: [id] })).json.deleted, [])
    assert.deepEqual((await b.post(`/api/jobs/${id}/cancel`)).json, { cancelled: false })
    await b.post('/history', { delete: [id], clear: true })
    assert.ok(id in (await a.get('/history')).json)
  })

  test('are sent to signed addresses for their files, on every path', async () => {
    for (const path of ['/view', '/api/view']) {
      const answer = await a.get(`${path}?filename=mine.png&type=input`)
      assert.equal(answer.status, 302)
      assert.match(answer.headers.get('location') ?? '', new RegExp(`^${app.url}/content/[0-9a-f-]{36}\\?signature=x$`))
    }
  })

  test('need a key, and every refusal is JSON and says where to go instead', async () => {
    const nobody = new LegacyClient(app.url)
    for (const path of ['/prompt', '/api/queue', '/api/view?filename=x', '/api/object_info']) {
      const answer = await nobody.get(path)
      assert.deepEqual([answer.status, answer.json.code, typeof answer.json.error], [401, 'unauthorized', 'string'])
      assert.match(answer.headers.get('link') ?? '', /rel="successor-version"/)
      assert.match(answer.headers.get('deprecation') ?? '', /^@\d+$/)
    }
    const wrong = new LegacyClient(app.url, { 'x-api-key': 'no', authorization: 'Bearer key-a' })
    assert.equal((await wrong.get('/prompt')).status, 401, 'X-API-Key wins')
  })
})

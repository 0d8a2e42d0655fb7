/** An account's keys in its own hands: made, shown once, rotated, revoked, and never more than the one that makes them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestApp } from '../../support/app/start-app.ts'
import { startShared } from '../../support/app/start-shared.ts'
import { createConsoleClient } from '../../support/clients/console-client.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'

const [KEYS, KEY, ROTATE] = ['/keys', '/keys/{id}', '/keys/{id}/rotate']

test('a key is made, shown once, rotated and revoked by its own account', async () => {
  await using shared = await startShared()
  const [ann, bob] = [await shared.account('ann'), await shared.account('bob')]
  const [client, other] = [createConsoleClient(shared.url, ann.key), createConsoleClient(shared.url, bob.key)]
  const made = (await client.ask('POST', KEYS, KEYS, { name: 'phone', scopes: ['jobs:read'] })).json
  const { id } = made.key
  assert.match(made.secret, /^atl_/)
  const listed = await client.ask('GET', KEYS)
  assert.ok(!listed.text.includes(made.secret))
  const shown = listed.json.keys.map((key: Record<string, unknown>) => [key['name'], key['is_current']])
  assert.deepEqual(shown, [
    ['', true],
    ['phone', false],
  ])
  const phone = createConsoleClient(shared.url, made.secret)
  assert.equal((await phone.ask('GET', '/jobs')).status, 200)
  assert.equal((await phone.ask('GET', KEYS)).status, 403)
  for (const [method, template, path] of [
    ['DELETE', KEY, `/keys/${id}`],
    ['POST', ROTATE, `/keys/${id}/rotate`],
  ] as const)
    assert.equal((await other.ask(method, template, path, method === 'POST' ? {} : undefined)).status, 404)
  assert.deepEqual((await other.ask('GET', KEYS)).json.keys.length, 1)
  const rotated = await client.ask('POST', ROTATE, `/keys/${id}/rotate`, { overlap_seconds: 0 })
  assert.equal((await phone.ask('GET', '/jobs')).status, 401)
  const renewed = createConsoleClient(shared.url, rotated.json.secret)
  assert.equal((await renewed.ask('GET', '/jobs')).status, 200)
  assert.equal((await client.ask('DELETE', KEY, `/keys/${id}`)).status, 204)
  assert.equal((await renewed.ask('GET', '/jobs')).status, 401)
  const { records } = (await shared.admin('GET', `/audit?subject=${id}`)).json
  assert.deepEqual(
    records.map(({ action }: { action: string }) => action),
    ['key.revoke', 'key.rotate'],
  )
  assert.match(records[0].actor, /^key \w{12}$/)
})

test('a key gives nothing that the one which makes it has not', async () => {
  await using shared = await startShared()
  const ann = await shared.account('ann')
  const whole = createConsoleClient(shared.url, ann.key)
  const make = async (client: typeof whole, scopes: readonly string[] | null) =>
    client.ask('POST', KEYS, KEYS, { name: 'x', scopes })
  const narrow = createConsoleClient(shared.url, (await make(whole, ['keys:write', 'jobs:read'])).json.secret)
  assert.equal((await make(narrow, ['jobs:write'])).status, 403)
  assert.deepEqual((await make(narrow, null)).json.key.scopes, ['keys:write', 'jobs:read'])
  const [first] = (await narrow.ask('GET', KEYS)).json.keys
  assert.equal((await narrow.ask('POST', ROTATE, `/keys/${first.id}/rotate`, {})).status, 403)
  for (const body of [{ scopes: ['x'] }, { scopes: [] }, { name: 5 }, { expires_at: 'x' }, { what: 1 }, []])
    assert.ok([400, 422].includes((await whole.ask('POST', KEYS, KEYS, body)).status), JSON.stringify(body))
  for (const overlap of [-1, 1e9, 0.5, 'x'])
    assert.ok((await whole.ask('POST', ROTATE, `/keys/${first.id}/rotate`, { overlap_seconds: overlap })).status >= 400)
})

test('the local kind has no keys', async () => {
  await using app = await startTestApp({ overrides: { engine: createFakeEngine() } })
  assert.equal((await createConsoleClient(app.url).ask('GET', KEYS)).status, 404)
})

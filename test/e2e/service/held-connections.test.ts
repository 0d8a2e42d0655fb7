/** Open connections end when their credential does: with a revoked key, a rotated key, or a suspended account. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type SharedApp, startShared, type Tenant } from '../../support/app/start-shared.ts'
import { type EventReader, openEvents } from '../../support/clients/event-reader.ts'

const GATE = JSON.stringify({ workflow: { '1': { class_type: 'FakeGate', inputs: {} } } })

let app: SharedApp
let tenant: Tenant
let events: string
before(async () => {
  app = await startShared()
  tenant = await app.account('acme')
  const { json } = await tenant.call('/api/v2/jobs', { method: 'POST', body: GATE })
  events = json.urls.events
})
after(() => app[Symbol.asyncDispose]())

async function watch(key: string): Promise<EventReader> {
  const reader = openEvents(app.url, events, { Authorization: `Bearer ${key}` })
  assert.match(await reader.head, /^HTTP\/1.1 200 /)
  assert.equal((await reader.next())?.event, 'status')
  return reader
}

async function untilClosed(reader: EventReader): Promise<void> {
  const frames = await reader.rest()
  assert.deepEqual(frames.at(-1), { event: 'comment', data: 'closing' })
}

const newKey = async () => (await app.admin('POST', '/accounts/acme/keys', {})).json as { id: string; text: string }

test('the streams of a key end soon after it was revoked, or rotated without an overlap; those of others stay', async () => {
  using stays = await watch(tenant.key)
  const [revoked, rotated] = [await newKey(), await newKey()]
  using one = await watch(revoked.text)
  using two = await watch(rotated.text)
  await app.admin('POST', `/keys/${revoked.id}/revoke`)
  await app.admin('POST', `/keys/${rotated.id}/rotate`, { overlap_seconds: 0 })
  await Promise.all([untilClosed(one), untilClosed(two)])
  assert.equal(stays.socket.readyState, 'open')
})

test('the streams of an account end soon after it was suspended', async () => {
  using reader = await watch(tenant.key)
  await app.admin('PATCH', '/accounts/acme', { status: 'suspended' })
  await untilClosed(reader)
})

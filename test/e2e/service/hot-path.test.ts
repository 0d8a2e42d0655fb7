/** A poll is answered before the framework when the job is in memory. Clients must not notice any difference. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestApp } from '../../support/app/start-app.ts'

// Different for every answer, by design.
const OWN = new Set(['date', 'x-service-request-id', 'x-comfy-request-id'])

async function read(url: string, headers: Record<string, string> = {}) {
  const response = await fetch(url, { headers })
  const seen = [...response.headers].filter(([name]) => !OWN.has(name)).toSorted(([a], [b]) => a.localeCompare(b))
  return { status: response.status, headers: seen, body: await response.text() }
}

test('the hot path and the framework give the same answer, header by header', async () => {
  await using service = await startTestApp()
  const workflow = { '1': { class_type: 'PreviewAny', inputs: { source: 'a value' } } }
  const submitted = await fetch(`${service.url}/api/v2/jobs`, { method: 'POST', body: JSON.stringify({ workflow }) })
  const { id } = (await submitted.json()) as { id: string }
  const url = `${service.url}/api/v2/jobs/${id}`
  await (await fetch(`${url}/events`)).text()
  // The first read puts the job into memory; a query of any kind keeps a request off the hot path.
  await read(url)
  const [hot, framework] = [await read(url), await read(`${url}?framework`)]
  assert.equal(hot.status, 200)
  assert.deepEqual(hot, framework)
})

test('they also give the same answer to a caller without a valid credential', async () => {
  await using service = await startTestApp({ settings: { token: 'good' } })
  const url = `${service.url}/api/v2/jobs/00000000-0000-7000-8000-000000000000`
  const credentials: Record<string, string>[] = [{}, { authorization: 'Bearer bad' }, { authorization: 'Bearer' }]
  for (const headers of credentials) {
    for (const address of [url, `${url}/events`]) {
      const [hot, framework] = [await read(address, headers), await read(`${address}?framework`, headers)]
      assert.equal(hot.status, 401)
      assert.deepEqual(hot, framework)
    }
  }
})

/** Requests that no well-behaved client sends, against the whole service: each gets its answer, and nobody else waits for it. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startTestApp, type TestApp } from '../support/app/start-app.ts'
import { call } from '../support/clients/call.ts'
import { sendRaw } from '../support/clients/raw-http.ts'

let app: TestApp
before(async () => {
  app = await startTestApp()
})
after(() => app[Symbol.asyncDispose]())

test('a refused body does not keep a connection open whose sender asked for its end', async () => {
  const refused = {
    'forbidden origin': 'POST /api/v2/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://evil.example\r\n',
    'no such method': 'PATCH /api/v2/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\n',
    'bad key': 'POST /api/v2/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nIdempotency-Key: \r\n',
  }
  for (const [name, head] of Object.entries(refused)) {
    const bytes = `${head}Connection: close\r\nContent-Length: 2\r\n\r\n{}`
    // It waits for the server to end the connection, far longer than that takes and far shorter than keep-alive lasts.
    const answer = await sendRaw({ url: app.url, bytes, halfClose: false, withinMs: 50_000 })
    assert.ok(answer !== null && answer.status >= 400, name)
  }
})

test('a second Host header is refused', async () => {
  const bytes = 'GET /api/v2/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n'
  const answer = await sendRaw({ url: app.url, bytes })
  assert.equal(answer?.status, 400)
  assert.match(answer?.body ?? '', /"invalid_request".*only once/)
})

test('a body within the size limit whose parsing would take seconds is refused before it is parsed', async () => {
  const wrap = (value: string) => `{"workflow":{"1":{"class_type":"PreviewAny","inputs":{"source":${value}}}}}`
  const many = await call(app.url, '/api/v2/jobs', { method: 'POST', body: wrap(`[${'1.0,'.repeat(500_000)}0]`) })
  assert.equal(many.status, 413)
  assert.equal(many.json.error.code, 'payload_too_large')
  assert.deepEqual(many.json.error.details, { max_values: 500_000 })
  const long = await call(app.url, '/api/v2/jobs', { method: 'POST', body: wrap('9'.repeat(1_000_000)) })
  assert.equal(long.status, 400)
  assert.equal(long.json.error.code, 'invalid_request')
})

test('a text output of many slices keeps every character', async () => {
  const text = '💥a'.repeat(200_000)
  const body = JSON.stringify({ workflow: { '1': { class_type: 'PreviewAny', inputs: { source: text } } } })
  const submitted = await call(app.url, '/api/v2/jobs', { method: 'POST', body })
  assert.equal(submitted.status, 201)
  // The stream ends with the job.
  await call(app.url, `/api/v2/jobs/${submitted.json.id}/events`)
  const { json: job } = await call(app.url, `/api/v2/jobs/${submitted.json.id}`)
  assert.equal(job.status, 'succeeded')
  const content = await call(app.url, `/api/v2/assets/${job.outputs[0].id}/content`)
  assert.equal(content.text, text)
})

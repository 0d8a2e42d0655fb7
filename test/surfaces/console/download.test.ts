/** `?download=1`: content is saved rather than shown, from our own routes and behind signed addresses. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestApp } from '../../support/app/start-app.ts'
import { startShared } from '../../support/app/start-shared.ts'
import { createConsoleClient } from '../../support/clients/console-client.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'

const SAVE = { '1': { class_type: 'FakeSave', inputs: { text: 'x' } } }

async function outputOf(url: string, headers: Record<string, string>, jobId: string): Promise<string> {
  const answer = await fetch(`${url}/api/v2/jobs/${jobId}`, { headers })
  const job = (await answer.json()) as { readonly outputs: readonly { readonly id: string }[] }
  return job.outputs[0]?.id ?? ''
}

test('content is an attachment where that is asked for', async () => {
  await using app = await startTestApp({ overrides: { engine: createFakeEngine() } })
  const client = createConsoleClient(app.url)
  const jobId = await client.submit(SAVE)
  await client.untilStatus(jobId, 'succeeded')
  const content = `${app.url}/api/v2/assets/${await outputOf(app.url, {}, jobId)}/content`
  const kindOf = async (query: string) =>
    (await fetch(content + query)).headers.get('content-disposition')?.split(';')[0] ?? ''
  assert.deepEqual(
    [await kindOf(''), await kindOf('?download=1'), await kindOf('?download=0')],
    ['inline', 'attachment', 'inline'],
  )
})

test('a signed address takes it along, and nothing else', async () => {
  await using shared = await startShared()
  const ann = await shared.account('ann')
  const client = createConsoleClient(shared.url, ann.key)
  const jobId = await client.submit(SAVE)
  await client.untilStatus(jobId, 'succeeded')
  const headers = { authorization: `Bearer ${ann.key}` }
  const content = `${shared.url}/api/v2/assets/${await outputOf(shared.url, headers, jobId)}/content`
  const answer = await fetch(`${content}?download=1`, { headers, redirect: 'manual' })
  const location = new URL(answer.headers.get('location') ?? '', shared.url).href
  assert.match(location, /&download=1$/)
  const bytes = await fetch(location)
  assert.deepEqual([bytes.status, bytes.headers.get('content-disposition')?.split(';')[0]], [200, 'attachment'])
  const plain = await fetch(location.replace('&download=1', ''))
  assert.deepEqual([plain.status, plain.headers.get('content-disposition')?.split(';')[0]], [200, 'inline'])
  assert.notEqual((await fetch(location.replace('download=1', 'download=2'))).status, 200)
})

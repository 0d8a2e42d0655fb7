/** One rule for what jobs made, whichever way it is read: whoever may read jobs may read it; uploads need the right to read assets. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type SharedApp, startShared, type Tenant } from '../../support/app/start-shared.ts'
import { type Answer, call } from '../../support/clients/call.ts'
import { waitUntil } from '../../support/wait-until.ts'

describe('the outputs of jobs', () => {
  let app: SharedApp
  let tenant: Tenant
  let batchId: string
  let jobId: string
  let output: { readonly id: string; readonly name: string; readonly url: string }
  let uploadId: string
  before(async () => {
    app = await startShared()
    tenant = await app.account('tenant')
    const jobs = [{ workflow: { '1': { class_type: 'FakeSave', inputs: {} } } }]
    const batch = await tenant.call('/api/v2/jobs/batch', { method: 'POST', body: JSON.stringify({ jobs }) })
    assert.equal(batch.status, 201, batch.text)
    batchId = batch.json.id
    const job = await waitUntil(async () => {
      const [first] = (await tenant.call('/api/v2/jobs')).json.jobs
      return first?.status === 'succeeded' ? first : null
    })
    jobId = job.id
    output = job.outputs[0]
    const form = new FormData()
    form.append('file', new Blob(['a secret of the account']), 'secret.txt')
    form.append('content_type', 'text/plain')
    form.append('file_path', 'secret.txt')
    const headers = { authorization: `Bearer ${tenant.key}` }
    const upload = await fetch(`${app.url}/api/v2/assets`, { method: 'POST', body: form, headers })
    uploadId = ((await upload.json()) as { id: string }).id
  })
  after(() => app[Symbol.asyncDispose]())

  async function keyWith(...scopes: string[]): Promise<(method: string, path: string) => Promise<Answer>> {
    const made = await app.admin('POST', '/accounts/tenant/keys', { scopes })
    assert.equal(made.status, 201, made.text)
    return (method, path) => call(app.url, path, { method, headers: { authorization: `Bearer ${made.json.text}` } })
  }

  const waysTo = (id: string, name: string, type: string): [string, string][] => [
    ['GET', `/api/v2/assets/${id}`],
    ['GET', `/api/v2/assets/${id}/content`],
    ['HEAD', `/api/v2/assets/${id}/content`],
    ['GET', `/api/view?filename=${name}&type=${type}`],
    ['GET', `/view?filename=${name}&type=${type}`],
    ['GET', `/console/v1/thumbnails/${id}?w=64`],
    ['GET', `/api/video_metadata?filename=${name}&type=${type}`],
  ]
  const archives = (): [string, string][] => [
    ['GET', `/api/v2/batches/${batchId}/outputs.zip`],
    ['GET', `/console/v1/jobs/${jobId}/outputs.zip`],
  ]

  test('are read in every way by whoever may read jobs', async () => {
    const ask = await keyWith('jobs:read')
    const [shown] = (await ask('GET', `/api/v2/jobs/${jobId}`)).json.outputs
    const made = await (await fetch(shown.url)).text()
    assert.notEqual(made, '')
    for (const [method, path] of [...waysTo(output.id, output.name, 'output'), ...archives()]) {
      const { status, headers, text } = await ask(method, path)
      // What is made here is no picture that could be made small, and has no frames.
      if (/thumbnails|video/.test(path)) assert.notEqual(status, 403, `${method} ${path}: ${text}`)
      else assert.ok([200, 302].includes(status), `${method} ${path}: ${status} ${text}`)
      const signed = headers['location']
      if (signed !== undefined) assert.equal(await (await fetch(signed)).text(), made)
    }
  })

  test('are all that this right opens: uploads and what does not exist look alike', async () => {
    const ask = await keyWith('jobs:read')
    const nowhere = '00000000-0000-7000-8000-000000000000'
    const refusals = new Set<string>()
    for (const [id, name] of [[uploadId, 'secret.txt'] as const, [nowhere, 'nothing.txt'] as const]) {
      for (const [method, path] of waysTo(id, name, 'input')) {
        const { status, text } = await ask(method, path)
        assert.equal(status, 403, `${method} ${path}: ${text}`)
        if (path.startsWith('/api/v2/') && method === 'GET') refusals.add(text)
      }
    }
    assert.equal(refusals.size, 1)
    for (const path of ['/console/v1/assets', '/api/internal/files/output'])
      assert.equal((await ask('GET', path)).status, 403, path)
  })

  test('are read with the right to read assets too, as uploads are; jobs are not', async () => {
    const ask = await keyWith('assets:read')
    for (const [id, name, type] of [
      [output.id, output.name, 'output'] as const,
      [uploadId, 'secret.txt', 'input'] as const,
    ]) {
      for (const [method, path] of waysTo(id, name, type).slice(0, 5))
        assert.ok((await ask(method, path)).status < 400, `${method} ${path}`)
    }
    for (const [method, path] of [...archives(), ['GET', `/api/v2/jobs/${jobId}`] as const])
      assert.equal((await ask(method, path)).status, 403, path)
  })

  test('are closed to every other right', async () => {
    const ask = await keyWith('models:read', 'models:run', 'jobs:write', 'assets:write', 'keys:write')
    for (const [method, path] of [...waysTo(output.id, output.name, 'output'), ...archives()])
      assert.equal((await ask(method, path)).status, 403, `${method} ${path}`)
  })
})

/** Parts of `extra_data` that are no credentials are stored with a waiting job, and survive every end of the process. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { spawnServer } from '../../support/app/spawn-server.ts'
import { CheckedClient } from '../../support/clients/checked-client.ts'
import { LegacyClient } from '../../support/clients/legacy-client.ts'
import { saveGraph } from '../../support/clients/legacy-graphs.ts'

// As text: a client of another language sends such numbers, and JSON.stringify could not.
const PNG_INFO = '{"workflow":{"id":"w","seed":18446744073709551615,"cfg":1.0,"tiny":1e-7,"name":"näme 😀"}}'
const EMBEDDED =
  '{"id": "w", "seed": 18446744073709551615, "cfg": 1.0, "tiny": 1e-07, "name": "n\\u00e4me \\ud83d\\ude00"}'

test('a job that waits with extra_pnginfo survives any end of the process, and its picture embeds it', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'atelier-test-'))
  const flags = ['--data-dir', dataDir, '--log-level', 'error']
  const sealed = { ATELIER_SECRET_KEY: randomBytes(32).toString('hex') }
  const body = (name: string, color: number) =>
    `{"${name}":${JSON.stringify(saveGraph(color))},"extra_data":{"extra_pnginfo":${PNG_INFO}}}`
  const ids: string[] = []
  try {
    for (const env of [{}, sealed]) {
      for (const end of ['terminate', 'killNow'] as const) {
        await using server = await spawnServer([...flags, '--workers', '0'], env)
        const v2 = await new CheckedClient(server.url).submit(body('workflow', ids.length))
        const v1 = await new LegacyClient(server.url).post('/api/prompt', body('prompt', ids.length + 100))
        assert.deepEqual([v2.status, v1.status], [201, 200], v2.text + v1.text)
        ids.push(v2.json.id, v1.json.prompt_id)
        await server[end]()
      }
    }
    await using server = await spawnServer([...flags, '--workers', '1'], sealed)
    const client = new CheckedClient(server.url)
    for (const id of ids) {
      const job = await client.until(id, ({ completed_at }) => completed_at !== null)
      assert.equal(job.status, 'succeeded', JSON.stringify(job.error))
      const { bytes } = await client.call(`/api/v2/assets/${job.outputs[0]?.id}/content`)
      assert.ok(bytes.includes(`workflow\0${EMBEDDED}`), bytes.toString('latin1').slice(0, 2000))
      assert.ok(!(await client.call(`/api/v2/jobs/${id}/workflow`)).text.includes('näme'), 'it is no part of the graph')
    }
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
})

test('a job whose credentials are empty has none to lose', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'atelier-test-'))
  const flags = ['--data-dir', dataDir, '--log-level', 'error']
  const ids: string[] = []
  try {
    {
      await using server = await spawnServer([...flags, '--workers', '0'])
      for (const empty of ['""', 'null']) {
        const extra = `"extra_data":{"api_key_comfy_org":${empty},"auth_token_comfy_org":${empty},"extra_pnginfo":${PNG_INFO}}`
        const body = `{"prompt":${JSON.stringify(saveGraph(1))},${extra}}`
        ids.push((await new LegacyClient(server.url).post('/api/prompt', body)).json.prompt_id)
      }
      const v2 = { workflow: saveGraph(2), extra_data: { api_key_comfy_org: '' } }
      ids.push((await new CheckedClient(server.url).submit(JSON.stringify(v2))).json.id)
      await server.terminate()
    }
    await using server = await spawnServer([...flags, '--workers', '1'])
    for (const id of ids) {
      const job = await new CheckedClient(server.url).until(id, ({ completed_at }) => completed_at !== null)
      assert.equal(job.status, 'succeeded', JSON.stringify(job.error))
    }
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
})

/** Other users of the machine cannot read anything that the service writes into the data folder. */
import assert from 'node:assert/strict'
import { chmod, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { startTestApp } from '../support/app/start-app.ts'
import { CheckedClient, node } from '../support/clients/checked-client.ts'
import { LegacyClient } from '../support/clients/legacy-client.ts'
import { saveGraph } from '../support/clients/legacy-graphs.ts'

// The most generous there is: whoever asks for no mode gives everything away.
let umask: number
before(() => {
  umask = process.umask(0)
})
after(() => void process.umask(umask))

async function modesBelow(folder: string): Promise<readonly (readonly [path: string, mode: string])[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const paths = [folder, ...entries.map(({ parentPath, name }) => join(parentPath, name))]
  return Promise.all(
    paths.map(async (path) => {
      const found = await stat(path)
      const kind = found.isDirectory() ? 'folder' : 'file'
      return [path.slice(folder.length) || '/', `${kind} ${(found.mode & 0o777).toString(8)}`] as const
    }),
  )
}

async function use(url: string): Promise<void> {
  const jobs = new CheckedClient(url)
  await jobs.uploaded('small.txt', 'small')
  await jobs.uploaded('large.bin', new Uint8Array(300_000))
  const run = node('RunModel', { model: 'sandbox/image', input: '{"prompt":"x"}' })
  const graph = { ...saveGraph(7), '8': run, '9': node('PreviewAny', { source: ['8', 0] }) }
  const job = await jobs.run(graph, { extra_data: { extra_pnginfo: { workflow: {} }, api_key_comfy_org: 'secret' } })
  assert.equal(job.status, 'succeeded', JSON.stringify(job.error))
  const legacy = new LegacyClient(url)
  assert.equal((await legacy.upload('picture.png', new Uint8Array([1, 2, 3]))).status, 200)
  assert.equal((await legacy.post('/api/userdata/mine.json', '{}')).status, 200)
  const queued = await fetch(`${url}/v2/models/sandbox/image/requests`, { method: 'POST', body: '{"prompt":"x"}' })
  assert.equal(queued.status, 201)
}

test('every file in the data folder is for its owner alone, and every folder too', async () => {
  const first = await startTestApp({ settings: { secretKey: 'ab'.repeat(32) } })
  await use(first.url)
  // As an older version may have left it.
  await chmod(join(first.dataDir, 'router-sends'), 0o644)
  await using second = await first.restart()
  await use(second.url)
  const modes = await modesBelow(second.dataDir)
  const open = modes.filter(([, mode]) => mode !== 'file 600' && mode !== 'folder 700')
  assert.deepEqual(open, [])
  const names = modes.map(([path]) => path)
  for (const name of ['/atelier.db', '/atelier.db-wal', '/lock.db', '/signing-keys', '/router-sends', '/blobs'])
    assert.ok(names.includes(name), `${name} among ${names.join(' ')}`)
})

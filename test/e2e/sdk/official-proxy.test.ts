/** What callers of the official self-hosted proxy rely on, beside the contract that both serve. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { startTestApp } from '../../support/app/start-app.ts'
import { runAtelier } from '../../support/cli/atelier.ts'
import { CheckedClient, node, refused } from '../../support/clients/checked-client.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'

const WORKFLOW = { '1': node('FakeSource') }

async function withFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'atelier-import-')))
  try {
    await body(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const fromPath = (client: CheckedClient, body: unknown) =>
  client.call('/api/v2/assets/from-path', { method: 'POST', body: JSON.stringify(body) })

test('a file of this machine becomes an asset, from the named folders and from nowhere else', async () => {
  await withFolder(async (folder) => {
    const [open, closed] = [join(folder, 'open'), join(folder, 'closed')]
    await mkdir(join(open, 'deep'), { recursive: true })
    await mkdir(closed)
    await mkdir(join(folder, 'open-too'))
    await writeFile(join(open, 'deep', 'a.png'), 'picture bytes')
    await writeFile(join(closed, 'secret.txt'), 'secret')
    await writeFile(join(folder, 'open-too', 'b.txt'), 'neighbour')
    await symlink(join(open, 'deep', 'a.png'), join(open, 'inside.png'))
    await symlink(join(closed, 'secret.txt'), join(open, 'leak.txt'))
    await symlink(closed, join(open, 'way-out'))
    await symlink('/proc/self/environ', join(open, 'environ'))
    execFileSync('mkfifo', [join(open, 'pipe')])
    await using app = await startTestApp({ settings: { importDirs: open }, overrides: { engine: createFakeEngine() } })
    const client = new CheckedClient(app.url)
    const made = await fromPath(client, { path: join(open, 'deep', 'a.png'), tags: ['mine'] })
    assert.deepEqual([made.status, made.json.created_new, made.json.size_bytes], [201, true, 13], made.text)
    assert.deepEqual([made.json.file_path, made.json.content_type], ['a.png', 'image/png'])
    const content = await client.call(`/api/v2/assets/${made.json.id}/content`)
    assert.equal(content.bytes.toString(), 'picture bytes')
    // The asset is a copy: what becomes of the file does not change it.
    await writeFile(join(open, 'deep', 'a.png'), 'other bytes!!')
    assert.equal((await client.call(`/api/v2/assets/${made.json.id}/content`)).bytes.toString(), 'picture bytes')
    const linked = await fromPath(client, {
      path: join(open, 'inside.png'),
      file_path: 'input/c.png',
      content_type: 'image/webp',
    })
    assert.deepEqual(
      [linked.status, linked.json.file_path, linked.json.content_type],
      [201, 'input/c.png', 'image/webp'],
    )
    assert.equal((await fromPath(client, { path: join(open, 'deep', '..', 'inside.png') })).status, 200)
    const outside = [
      join(closed, 'secret.txt'),
      join(closed, 'not-there.txt'),
      join(open, '..', 'closed', 'secret.txt'),
      join(folder, 'open-too', 'b.txt'),
      join(open, 'leak.txt'),
      join(open, 'way-out', 'secret.txt'),
      join(open, 'environ'),
      open,
      'deep/a.png',
      '/etc/passwd',
      `${join(open, 'deep', 'a.png')}\0.txt`,
      `/${'x'.repeat(4200)}`,
    ]
    for (const path of outside) {
      const answer = await fromPath(client, { path })
      refused(answer, 422, 'invalid_request')
      assert.match(answer.text, /importDirs/, path)
      assert.doesNotMatch(answer.text, /secret/)
    }
    for (const path of [
      join(open, 'nothing.png'),
      join(open, 'deep'),
      join(open, 'pipe'),
      join(open, 'deep', 'a.png', 'b'),
    ])
      refused(await fromPath(client, { path }), 404, 'blob_not_found')
    for (const body of [{}, { path: 7 }, { path: '' }, { path: join(open, 'inside.png'), file_path: '../x' }])
      refused(await fromPath(client, body), 422, 'invalid_request')
    refused(await fromPath(client, []), 400, 'invalid_request')
    // The folder itself is exchanged while the service runs.
    await rename(open, join(folder, 'gone'))
    await symlink(closed, open)
    refused(await fromPath(client, { path: join(open, 'secret.txt') }), 422, 'invalid_request')
  })
})

test('a file above the limit is refused, and nobody imports where no folder is named', async () => {
  await withFolder(async (folder) => {
    await writeFile(join(folder, 'large.bin'), Buffer.alloc(2000))
    const settings = { importDirs: folder, maxUpload: '1000B' }
    await using app = await startTestApp({ settings, overrides: { engine: createFakeEngine() } })
    const client = new CheckedClient(app.url)
    refused(await fromPath(client, { path: join(folder, 'large.bin') }), 413, 'payload_too_large')
    await using plain = await startTestApp({ overrides: { engine: createFakeEngine() } })
    const none = await fromPath(new CheckedClient(plain.url), { path: join(folder, 'large.bin') })
    refused(none, 422, 'invalid_request')
    assert.match(none.text, /importDirs/)
    const shared = await runAtelier([
      'serve',
      '--kind',
      'cloud',
      '--import-dirs',
      folder,
      '--data-dir',
      join(folder, 'd'),
    ])
    assert.deepEqual([shared.code, /importDirs .*leave it out/.test(shared.stderr)], [2, true], shared.stderr)
    const missing = await runAtelier([
      'serve',
      '--port',
      '0',
      '--import-dirs',
      join(folder, 'no'),
      '--data-dir',
      join(folder, 'd'),
    ])
    assert.equal(missing.code, 2)
    assert.match(missing.stderr, /^atelier: importDirs names .*\n$/)
  })
})

test('metadata may be one text, which comes back as it was sent', async () => {
  await using app = await startTestApp({ overrides: { engine: createFakeEngine() } })
  const client = new CheckedClient(app.url)
  const submit = (metadata: unknown) => client.submit({ workflow: WORKFLOW, metadata })
  for (const text of ['batch 7, scene 3', '', '{"a": 1}', 'ä'.repeat(512)]) {
    const { status, json } = await submit(text)
    assert.deepEqual([status, json.metadata], [201, text])
    assert.equal((await client.call(`/api/v2/jobs/${json.id}`)).json.metadata, text)
  }
  for (const text of ['x'.repeat(1025), 'ä'.repeat(513), 'a\u0000b', '\ud800'])
    refused(await submit(text), 422, 'metadata_invalid')
  refused(await submit({ '': 'text' }), 422, 'metadata_invalid')
  assert.deepEqual((await submit({ a: 'b' })).json.metadata, { a: 'b' })
  assert.deepEqual((await submit({})).json.metadata, {})
})

test('health names what runs the jobs, and links are absolute where the operator wants them so', async () => {
  await using app = await startTestApp({
    settings: { absoluteUrls: 'true' },
    overrides: { engine: createFakeEngine() },
  })
  const client = new CheckedClient(app.url)
  assert.deepEqual((await client.call('/api/v2/health')).json, { status: 'healthy', upstream: 'embedded' })
  const { json: job } = await client.submit({ workflow: WORKFLOW })
  for (const [name, link] of Object.entries<string>(job.urls))
    assert.equal(link, `${app.url}/api/v2/jobs/${job.id}${name === 'self' ? '' : `/${name}`}`)
  assert.equal((await fetch(job.urls.self)).status, 200)
})

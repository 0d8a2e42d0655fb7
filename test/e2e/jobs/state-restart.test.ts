/** What was acknowledged is there after a restart, in order or without any warning, exactly as it was. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { spawnServer } from '../../support/app/spawn-server.ts'
import { startTestApp } from '../../support/app/start-app.ts'
import { assetRef, CheckedClient, node } from '../../support/clients/checked-client.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'

/** Everything that a caller can read of the service, without the address it was read at. */
async function snapshot(client: CheckedClient, assetIds: readonly string[]): Promise<unknown> {
  const texts: string[] = []
  const { jobs } = (await client.call('/api/v2/jobs?limit=100')).json
  for (const { id } of jobs) {
    for (const rest of ['', '/workflow', '/logs']) {
      const { status, text } = await client.call(`/api/v2/jobs/${id}${rest}`)
      texts.push(`${id}${rest} ${status} ${text}`)
    }
  }
  const outputIds = jobs.flatMap(({ outputs }: { outputs: { id: string }[] }) => outputs.map(({ id }) => id))
  for (const id of [...outputIds, ...assetIds]) {
    const { url_expires_at, ...record } = (await client.call(`/api/v2/assets/${id}`)).json
    const { bytes } = await client.call(`/api/v2/assets/${id}/content`)
    const known = await client.call(`/api/v2/assets/by-hash/${record.hash}`, { method: 'HEAD' })
    texts.push(`${JSON.stringify(record)} ${known.status} ${bytes.toString('base64')}`)
  }
  return texts.map((text) => text.replaceAll(client.url, ''))
}

test('a restart changes nothing that can be read, and what waited runs', async () => {
  const engine = createFakeEngine()
  const first = await startTestApp({ settings: { workers: '1', drainTimeout: '0s' }, overrides: { engine } })
  const before = new CheckedClient(first.url)
  const asset = await before.uploaded('input/kept.png', 'kept bytes', { fields: { tags: ['a'], expires_in: '604800' } })
  await before.run(
    { '1': node('FakeLog', { text: 'printed' }), '2': node('FakeSave', { count: 3 }) },
    {
      metadata: { scene: '12' },
      priority: 7,
    },
  )
  await before.run({ '1': node('FakeFail') })
  await before.run({ '1': node('FakeSource', { image: assetRef(asset.id), seed: 1 }) })
  const canceled = await before.accepted({ '1': node('FakeHang') })
  await before.untilStatus(canceled.id, 'running')
  await before.cancel(canceled.id)
  await before.untilStatus(canceled.id, 'canceled')
  const was = await snapshot(before, [asset.id])
  await using second = await first.restart()
  const client = new CheckedClient(second.url)
  assert.deepEqual(await snapshot(client, [asset.id]), was)
  const again = await client.upload('input/kept.png', 'kept bytes', { fields: { tags: ['a'] } })
  assert.deepEqual([again.status, again.json.id], [200, asset.id])
})

test('jobs that ran or waited when the service stopped run to their end in the next one, once', async () => {
  const engine = createFakeEngine()
  const first = await startTestApp({ settings: { workers: '1', drainTimeout: '0s' }, overrides: { engine } })
  const before = new CheckedClient(first.url)
  const running = await before.accepted({ '1': node('FakeSave', { text: 'early' }), '2': node('FakeGate') })
  await before.until(running.id, ({ outputs }) => outputs.length === 1)
  const early = (await before.job(running.id)).outputs[0]
  const waiting = await before.accepted({ '1': node('FakeSave', { text: 'late' }) })
  await using second = await first.restart()
  const client = new CheckedClient(second.url)
  engine.openGate()
  const ended = await client.untilStatus(running.id, 'succeeded')
  assert.deepEqual(
    ended.outputs.map(({ id }) => id),
    [early.id],
    'an output of the first attempt is shown twice, or is another one',
  )
  assert.equal((await client.untilStatus(waiting.id, 'succeeded')).outputs.length, 1)
  assert.equal(engine.runs.filter(({ jobId }) => jobId === waiting.id).length, 1)
})

test('a server that is killed without warning keeps every acknowledged record and finishes its jobs', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'atelier-killed-'))
  const flags = ['--data-dir', dataDir, '--workers', '1', '--log-level', 'error']
  try {
    await using first = await spawnServer(flags)
    const before = new CheckedClient(first.url)
    const asset = await before.uploaded('a.bin', Buffer.alloc(100_000, 7))
    const picture = node('EmptyImage', { width: 64, height: 64, batch_size: 1, color: 255 })
    const workflow = { '1': picture, '2': node('SaveImage', { images: ['1', 0], filename_prefix: 'x' }) }
    const done = await before.run(workflow, { metadata: { a: 'b' } })
    const was = await snapshot(before, [asset.id])
    const accepted = await Promise.all(Array.from({ length: 20 }, () => before.accepted(workflow)))
    await first.killNow()

    await using second = await spawnServer(flags)
    const client = new CheckedClient(second.url)
    for (const { id } of accepted) assert.equal((await client.untilStatus(id, 'succeeded')).outputs.length, 1)
    const names = accepted.length + 1
    const { jobs } = (await client.call('/api/v2/jobs?limit=100')).json
    assert.equal(jobs.length, names, 'a job was lost or doubled')
    const { jobs: labelled } = (await client.call('/api/v2/jobs?metadata[a]=b')).json
    assert.equal(labelled[0].id, done.id)
    const now = (await snapshot(client, [asset.id])) as string[]
    for (const text of was as string[]) assert.ok(now.includes(text), text.slice(0, 200))
    assert.equal(await second.terminate(), 0)
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
})

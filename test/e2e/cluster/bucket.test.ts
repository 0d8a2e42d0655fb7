/** Two services on one database and one bucket: what one stores the other has, and what happens while the storage is away. */
import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import sharp from 'sharp'
import { patterned } from '../../contracts/assets/blob-store.ts'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { runInProcess } from '../../support/cli/in-process.ts'
import { call } from '../../support/clients/call.ts'
import { assetRef, CheckedClient, node, refused } from '../../support/clients/checked-client.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'
import { TEST_PASSWORD, withoutPassword } from '../../support/postgres/postgres-server.ts'
import { createTestDatabase } from '../../support/postgres/test-database.ts'
import { startFakeS3 } from '../../support/s3/fake-s3.ts'
import { waitUntil } from '../../support/wait-until.ts'

const SECRET_KEY = 'ab'.repeat(32)
const AGAIN = /^[1-9]\d*$/

async function startTwo(settings: Readonly<Record<string, string>> = {}) {
  await using opening = new AsyncDisposableStack()
  const database = opening.use(await createTestDatabase())
  const fake = opening.use(await startFakeS3({ prefix: 'bytes' }))
  const shared = {
    database: database.url,
    secretKey: SECRET_KEY,
    blobs: fake.blobsUrl,
    blobsKeys: fake.keys,
    ...settings,
  }
  const engine = createFakeEngine()
  const start = async (workers: string): Promise<TestApp> =>
    opening.use(await startTestApp({ settings: { ...shared, workers }, overrides: { engine } }))
  // The first takes requests only, so the second runs every job.
  const [one, other] = [await start('0'), await start('1')]
  const all = opening.move()
  return {
    ...{ fake, engine, one, other, database },
    client: new CheckedClient(one.url),
    there: new CheckedClient(other.url),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  }
}

test('an upload through one and a job that the other ran are read through both, whole and in parts', async () => {
  await using service = await startTwo()
  const bytes = patterned(9 * 1024 * 1024)
  const { id } = await service.client.uploaded('large.png', bytes)
  const sent = await call(service.other.url, `/api/v2/assets/${id}/content`)
  assert.deepEqual([sent.status, sent.headers['cache-control']], [302, 'no-store'])
  const location = String(sent.headers.location)
  const direct = await fetch(location)
  assert.equal(direct.headers.get('content-type'), 'image/png')
  assert.match(direct.headers.get('content-disposition') ?? '', /^inline; filename="large\.png"$/)
  assert.ok(bytes.equals(Buffer.from(await direct.arrayBuffer())))
  const part = await fetch(location, { headers: { range: 'bytes=8388600-8388620' } })
  assert.deepEqual([part.status, Buffer.from(await part.arrayBuffer())], [206, bytes.subarray(8_388_600, 8_388_621)])
  const head = await call(service.one.url, `/api/v2/assets/${id}/content`, { method: 'HEAD' })
  assert.equal(head.status, 302)
  const known = await fetch(String(head.headers.location), { method: 'HEAD' })
  assert.deepEqual([known.status, known.headers.get('content-length')], [200, String(bytes.length)])
  // A page of another origin could not read the storage's answer, so it gets ours.
  const proxied = await call(service.other.url, `/api/v2/assets/${id}/content`, {
    headers: { 'sec-fetch-mode': 'cors', range: 'bytes=0-9' },
  })
  assert.deepEqual([proxied.status, proxied.bytes], [206, bytes.subarray(0, 10)])
  const job = await service.client.run({ '1': node('FakeSave', { count: 2 }) })
  for (const { id: output } of job.outputs) {
    for (const { url } of [service.one, service.other]) {
      const content = await call(url, `/api/v2/assets/${output}/content`, { headers: { 'sec-fetch-mode': 'cors' } })
      assert.equal(content.status, 200)
    }
  }
})

test('a large file goes to the bucket past the service, and becomes an asset like any other', async () => {
  await using service = await startTwo()
  const bytes = patterned(17 * 1024 * 1024 + 5)
  const post = (client: CheckedClient, step: string, body: object) =>
    client.call(`/api/v2/assets/uploads${step}`, { method: 'POST', body: JSON.stringify(body) })
  const fields = { content_type: 'image/png', file_path: 'huge.png', tags: ['a'], expires_in: 3600 }
  for (const wrong of [{}, { ...fields, size_bytes: 'x' }, { ...fields, size_bytes: 0 }, { size_bytes: 5 }])
    refused(await post(service.client, '', wrong), 422, 'invalid_request')
  const begun = await post(service.client, '', { ...fields, size_bytes: bytes.length })
  assert.equal(begun.status, 201)
  const { upload_id, part_size, part_count, parts } = begun.json
  assert.deepEqual([part_size, part_count, parts.length], [16 * 1024 * 1024, 2, 2])
  const anew = await post(service.there, '/parts', { upload_id, numbers: [2] })
  assert.deepEqual([anew.status, anew.json.parts[0].number, anew.json.parts[0].size_bytes], [200, 2, 1024 * 1024 + 5])
  const sent: { number: number; etag: string }[] = []
  for (const { number, size_bytes, url } of [parts[0], anew.json.parts[0]]) {
    const start = (number - 1) * part_size
    const answer = await fetch(url, {
      method: 'PUT',
      body: new Uint8Array(bytes.subarray(start, start + size_bytes)),
    })
    assert.equal(answer.status, 200)
    sent.push({ number, etag: answer.headers.get('etag') ?? '' })
  }
  for (const wrong of [{ parts: sent }, { upload_id }, { upload_id, parts: [{ number: 1 }] }, { upload_id, parts: [] }])
    refused(await post(service.there, '/complete', wrong), 422, 'invalid_request')
  refused(await post(service.there, '/complete', { upload_id: 'x', parts: sent }), 404, 'not_found')
  const made = await post(service.there, '/complete', { upload_id, parts: sent })
  assert.deepEqual([made.status, made.json.size_bytes, made.json.file_path], [201, bytes.length, 'huge.png'])
  const again = await post(service.client, '/complete', { upload_id, parts: sent })
  assert.deepEqual([again.status, again.json.id, again.json.created_new], [200, made.json.id, false])
  const content = await call(service.one.url, `/api/v2/assets/${made.json.id}/content`, {
    headers: { 'sec-fetch-mode': 'cors' },
  })
  assert.ok(bytes.equals(content.bytes))
  const other = await post(service.client, '', { ...fields, size_bytes: 10 })
  assert.equal((await post(service.there, '/abandon', { upload_id: other.json.upload_id })).status, 204)
  assert.equal(service.fake.uploads.size, 0)
})

test('what a browser could run is never sent by the storage, nor anything when that is not wanted', async () => {
  {
    await using service = await startTwo()
    for (const [name, type] of [
      ['page.html', 'text/html'],
      ['picture.svg', 'image/svg+xml'],
      ['notes.txt', 'text/plain'],
    ]) {
      const { id } = await service.client.uploaded(name, '<script>alert(1)</script>', {
        fields: { content_type: type },
      })
      const answer = await call(service.other.url, `/api/v2/assets/${id}/content`)
      assert.equal(answer.status, 200, name)
      assert.equal(answer.headers['x-content-type-options'], 'nosniff')
      assert.match(String(answer.headers['content-security-policy']), /^sandbox/)
    }
  }
  await using service = await startTwo({ content: 'proxy' })
  const { id } = await service.client.uploaded('a.png', 'bytes')
  const answer = await call(service.other.url, `/api/v2/assets/${id}/content`)
  assert.deepEqual([answer.status, answer.text], [200, 'bytes'])
})

test('bytes that nothing refers to leave the bucket after their grace', async () => {
  await using service = await startTwo()
  const { id } = await service.client.uploaded('gone.png', 'only for a while')
  assert.equal(service.fake.objects.size, 2, 'the bytes, and the id of the bucket')
  assert.equal((await service.there.call(`/api/v2/assets/${id}`, { method: 'DELETE' })).status, 204)
  // Chores run every minute; here both are asked at once, as the process that leads would.
  const { store } = service.one.app
  const index = store.blobIndex ?? assert.fail()
  await waitUntil(async () => {
    for (const hash of await store.assets.retireBlobs(new Date(Date.now() + 60_000), 10))
      await index.remove(hash, {
        isKnown: async () => (await store.assets.knownBlobs([hash])).length > 0,
        now: new Date(0),
      })
    return (await index.garbage(new Date(), 10)).length === 1
  })
})

test('while the storage is away every surface says so with a time to come back, and nothing is half recorded', async () => {
  await using service = await startTwo({ content: 'proxy' })
  const { client, fake, engine } = service
  const { id } = await client.uploaded('kept.png', patterned(1000))
  const job = await client.accepted({ '1': node('FakeGate'), '2': node('FakeSave', { count: 3 }) })
  await engine.untilRuns(1)
  fake.isDown = true
  for (const answer of [
    await client.upload('new.png', patterned(2000)),
    await client.call(`/api/v2/assets/${id}/content`),
    await service.there.call(`/api/v2/assets/${id}/content`),
  ]) {
    refused(answer, 503, 'store_unavailable')
    assert.match(String(answer.headers['retry-after']), AGAIN)
  }
  const view = await call(service.one.url, '/api/view?filename=kept.png&type=input')
  assert.ok([302, 503].includes(view.status), view.text)
  const legacy = await call(service.one.url, '/view?filename=kept.png&type=input')
  assert.equal(legacy.status, 503)
  assert.match(String(legacy.headers['retry-after']), AGAIN)
  const ready = await waitUntil(async () => {
    const answer = await call(service.one.url, '/readyz')
    return answer.json.degraded === undefined ? null : answer
  })
  assert.deepEqual([ready.status, ready.json.status, ready.json.degraded], [200, 'ready', ['blobs']])
  assert.ok(/^atelier_storage_failures [1-9]/m.test((await call(service.one.url, '/metrics')).text))
  // The run ends meanwhile: its outputs wait for the storage, and the job for its outputs.
  engine.openGate()
  const before = fake.asked.length
  await waitUntil(async () => fake.asked.length >= before + 3)
  assert.equal((await client.job(job.id)).status, 'running')
  fake.isDown = false
  const ended = await client.until(job.id, ({ status }) => status !== 'running')
  assert.deepEqual([ended.status, ended.outputs.length], ['succeeded', 3])
  const answer = await client.upload('new.png', patterned(2000))
  assert.equal(answer.status, 201)
})

test('a bucket of another database is refused, and so is a database whose bytes are elsewhere', async () => {
  await using service = await startTwo()
  await using foreign = await createTestDatabase()
  const { blobsUrl, keys } = service.fake
  const settings = { secretKey: SECRET_KEY, blobs: blobsUrl, blobsKeys: keys, workers: '0' }
  await assert.rejects(startTestApp({ settings: { ...settings, database: foreign.url } }), /belong to another database/)
  await using empty = await startFakeS3()
  const elsewhere = { ...settings, database: service.database.url, blobs: empty.blobsUrl }
  await assert.rejects(startTestApp({ settings: elsewhere }), /are not in s3:\/\/test-bytes\/.*Name the bucket/)
  empty.isDown = true
  await assert.rejects(startTestApp({ settings: elsewhere }), /cannot be reached: .*503/)
})

test('the doctor tries everything on the bucket, and says what does not work', async () => {
  await using service = await startTwo()
  const { fake } = service
  const env = { ATELIER_SECRET_KEY: SECRET_KEY, ATELIER_BLOBS_KEYS: fake.keys, PGPASSWORD: TEST_PASSWORD }
  const examine = async (url = service.database.url) => {
    const args = ['doctor', '--database', withoutPassword(url), '--blobs', fake.blobsUrl, '--port', '0']
    const { stdout } = await runInProcess(args, { cwd: service.one.dataDir, env })
    return stdout
      .split('\n')
      .filter((line) => /^\S+ +bucket /.test(line))
      .join()
  }
  assert.match(await examine(), /^ok .*put, get, range, presigned, list, delete; its id is that of the database$/)
  assert.ok(![...fake.objects.keys()].some((key) => key.includes('doctor')), 'nothing is left')
  await using foreign = await createTestDatabase()
  assert.match(await examine(foreign.url), /^fail .*holds the bytes of another database$/)
  fake.fail('list', { kind: 'status', status: 403, code: 'AccessDenied' })
  assert.match(await examine(), /^fail .*list: GET of the bucket was answered with 403 AccessDenied$/)
})

test('keys of a session in a file are read again when the storage no longer takes them', async () => {
  await using database = await createTestDatabase()
  await using fake = await startFakeS3()
  const dataDir = await mkdtemp(join(tmpdir(), 'atelier-bucket-'))
  const keysFile = join(dataDir, 'keys')
  const giveKeys = async () => {
    const { id, secret, token } = fake.issue(new Date(Date.now() + fake.skewMs + 3_600_000))
    await writeFile(keysFile, `${id}:${secret}:${token}\n`)
  }
  await giveKeys()
  const settings = {
    database: database.url,
    secretKey: SECRET_KEY,
    blobs: `${fake.blobsUrl}&keys=${keysFile}`,
    workers: '0',
  }
  const app = await startTestApp({ dataDir, settings })
  const client = new CheckedClient(app.url)
  await client.uploaded('a.png', patterned(1000))
  fake.skewMs = 2 * 3_600_000
  await giveKeys()
  const bytes = patterned(2000)
  const { id } = await client.uploaded('b.png', bytes)
  const { headers } = await call(app.url, `/api/v2/assets/${id}/content`)
  const direct = await fetch(String(headers.location))
  assert.ok(bytes.equals(Buffer.from(await direct.arrayBuffer())))
  await app.app[Symbol.asyncDispose]()
  await rm(dataDir, { recursive: true })
})

test('an engine reads its inputs from files that are fetched once, and none is left when the process ends', async () => {
  await using database = await createTestDatabase()
  await using fake = await startFakeS3()
  const dataDir = await mkdtemp(join(tmpdir(), 'atelier-bucket-'))
  const settings = { database: database.url, secretKey: SECRET_KEY, blobs: fake.blobsUrl, blobsKeys: fake.keys }
  const app = await startTestApp({ dataDir, settings })
  const client = new CheckedClient(app.url)
  const picture = sharp({ create: { width: 64, height: 48, channels: 3, background: '#204060' } })
  const { id } = await client.uploaded('in.png', await picture.png().toBuffer())
  fake.asked.length = 0
  for (const prefix of ['one', 'other']) {
    await client.run({
      '1': node('LoadImage', { image: assetRef(id) }),
      '2': node('SaveImage', { images: ['1', 0], filename_prefix: prefix }),
    })
  }
  assert.equal(fake.asked.filter((operation) => operation === 'get').length, 1, 'the second run finds the file')
  const [own] = await readdir(join(dataDir, 'blob-cache'))
  assert.equal(
    (await readdir(join(dataDir, 'blob-cache', own))).length,
    2,
    'the file, and the folder of unfinished ones',
  )
  await app.app[Symbol.asyncDispose]()
  assert.deepEqual(await readdir(join(dataDir, 'blob-cache')), [])
  await rm(dataDir, { recursive: true })
})

test('a data folder moves to a database and a bucket and back, and its bytes are verified on both sides', async () => {
  const root = await mkdtemp(join(tmpdir(), 'atelier-bucket-'))
  await using database = await createTestDatabase()
  await using fake = await startFakeS3()
  const env = { ATELIER_SECRET_KEY: SECRET_KEY, ATELIER_BLOBS_KEYS: fake.keys, PGPASSWORD: TEST_PASSWORD }
  const place = withoutPassword(database.url)
  const run = (...args: string[]) => runInProcess(args, { cwd: root, env })
  const large = patterned(10 * 1024 * 1024)
  let id = ''
  {
    const app = await startTestApp({
      dataDir: join(root, 'data'),
      settings: { secretKey: SECRET_KEY },
      overrides: { engine: createFakeEngine() },
    })
    const client = new CheckedClient(app.url)
    id = (await client.uploaded('large.png', large)).id
    await client.run({ '1': node('FakeSave', { count: 2 }) })
    await app.app[Symbol.asyncDispose]()
  }
  const there = await run('move', '--from', 'data', '--to', place, '--blobs', fake.blobsUrl)
  assert.equal(there.code, 0, there.stderr)
  assert.match(there.stdout, /bytes are in s3:\/\/test-bytes\//)
  const settings = { database: database.url, secretKey: SECRET_KEY, blobs: fake.blobsUrl, blobsKeys: fake.keys }
  {
    await using app = await startTestApp({ settings: { ...settings, content: 'proxy', workers: '0' } })
    const content = await call(app.url, `/api/v2/assets/${id}/content`)
    assert.ok(large.equals(content.bytes))
  }
  const verify = () => run('verify', '--database', place, '--blobs', fake.blobsUrl, '--data-dir', 'scratch')
  const well = await verify()
  assert.deepEqual([well.code, well.stdout.endsWith('all is well\n')], [0, true], well.stdout + well.stderr)
  const [damaged] = [...fake.objects].filter(([key, { bytes }]) => key.startsWith('up/') && bytes.length > 1000)
  damaged[1].bytes[5] ^= 1
  const ill = await verify()
  assert.match(ill.stdout, /^damaged {3}[0-9a-f]{64}\n.*one fault\n$/)
  const refusedMove = await run('move', '--from', fake.blobsUrl, '--to', 'files', '--database', place)
  assert.deepEqual(
    [refusedMove.code, /are damaged; run `atelier verify --set-aside`/.test(refusedMove.stderr)],
    [1, true],
  )
  damaged[1].bytes[5] ^= 1
  const bytesAlone = await run('move', '--from', fake.blobsUrl, '--to', 'files', '--database', place)
  assert.equal(bytesAlone.code, 0, bytesAlone.stderr)
  assert.match(bytesAlone.stdout, /bytes are in .*files; start every process with them/)
  await using other = await startFakeS3()
  const onward = await run('move', '--from', 'files', '--to', other.blobsUrl, '--database', place)
  assert.equal(onward.code, 0, onward.stderr)
  const back = await run('move', '--from', place, '--to', 'back', '--blobs', other.blobsUrl)
  assert.equal(back.code, 0, back.stderr)
  {
    await using app = await startTestApp({ dataDir: join(root, 'back'), settings: { secretKey: SECRET_KEY } })
    assert.ok(large.equals((await call(app.url, `/api/v2/assets/${id}/content`)).bytes))
  }
  await rm(root, { recursive: true, force: true })
})

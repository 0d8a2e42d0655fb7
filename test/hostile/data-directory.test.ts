/** Damaged or mixed-up data folders: the service says what is wrong, and never makes it worse. */
import assert from 'node:assert/strict'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { diskFileOps } from '../../src/adapters/blobs/fs/file-ops.ts'
import { verifyDatabase } from '../../src/adapters/store/sqlite/database/verify-database.ts'
import { startTestApp, type TestApp, type TestAppOptions } from '../support/app/start-app.ts'
import { runAtelier } from '../support/cli/atelier.ts'
import { createFakeEngine } from '../support/engines/fake-engine.ts'

/** Without the built-in engine, whose threads take most of a start, and which few of these tests need. */
function startStoreApp(options: TestAppOptions = {}): Promise<TestApp> {
  return startTestApp({ ...options, overrides: { engine: createFakeEngine() } })
}

async function uploadText(app: TestApp, text: string): Promise<{ readonly id: string; readonly hash: string }> {
  const form = new FormData()
  form.set('content_type', 'text/plain')
  form.set('file_path', 'note.txt')
  form.set('file', new Blob([text]), 'note.txt')
  const answer = await fetch(`${app.url}/api/v2/assets`, { method: 'POST', body: form })
  assert.equal(answer.status, 201)
  return (await answer.json()) as { id: string; hash: string }
}

/** A service over its own folder, which outlives it for as long as the body runs. */
async function withStoppedApp(body: (dataDir: string, asset: { id: string; hash: string }) => Promise<void>) {
  const app = await startStoreApp()
  const { dataDir } = app
  try {
    const asset = await uploadText(app, 'worth keeping')
    await app.app[Symbol.asyncDispose]()
    await body(dataDir, asset)
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
}

function pathOf(dataDir: string, hash: string): string {
  const hex = hash.replace('blake3:', '')
  return join(dataDir, 'blobs', hex.slice(0, 2), hex.slice(2, 4), hex)
}

async function removeDatabase(dataDir: string): Promise<void> {
  for (const name of await readdir(dataDir)) {
    if (name.startsWith('atelier.db')) await rm(join(dataDir, name))
  }
}

test('stored bytes survive a start beside a database that does not know them', () =>
  withStoppedApp(async (dataDir, { hash }) => {
    await removeDatabase(dataDir)
    for (const time of ['first', 'second']) {
      await assert.rejects(startStoreApp({ dataDir }), /belong to another database/, `${time} start`)
    }
    assert.equal(await readFile(pathOf(dataDir, hash), 'utf8'), 'worth keeping')
  }))

test('with its own database back, the service goes on', () =>
  withStoppedApp(async (dataDir, { id }) => {
    const database = await readFile(join(dataDir, 'atelier.db'))
    await removeDatabase(dataDir)
    await assert.rejects(startStoreApp({ dataDir }), /belong to another database/)
    await removeDatabase(dataDir)
    await writeFile(join(dataDir, 'atelier.db'), database)
    await using app = await startStoreApp({ dataDir })
    const content = await fetch(`${app.url}/api/v2/assets/${id}/content`)
    assert.equal(await content.text(), 'worth keeping')
  }))

test('an emptied folder of bytes keeps nobody from starting', () =>
  withStoppedApp(async (dataDir, { id }) => {
    await rm(join(dataDir, 'blobs'), { recursive: true })
    await using app = await startStoreApp({ dataDir })
    assert.equal((await fetch(`${app.url}/api/v2/assets/${id}/content`)).status, 404)
    assert.equal((await uploadText(app, 'something new')).hash.slice(0, 7), 'blake3:')
  }))

test('a damaged database is named, with what to do', () =>
  withStoppedApp(async (dataDir) => {
    await writeFile(join(dataDir, 'atelier.db'), 'this is no database '.repeat(500))
    await assert.rejects(startStoreApp({ dataDir }), {
      name: 'StoreOpenError',
      message: /atelier\.db is damaged .*backup/,
    })
  }))

test('foreign things among the unfinished files do not matter', () =>
  withStoppedApp(async (dataDir, { id }) => {
    await mkdir(join(dataDir, 'blobs', 'tmp', 'a-folder'))
    await writeFile(join(dataDir, 'blobs', 'tmp', 'left-over'), 'half')
    await writeFile(join(dataDir, 'blobs', 'README'), 'not ours')
    await using app = await startStoreApp({ dataDir })
    assert.deepEqual(await readdir(join(dataDir, 'blobs', 'tmp')), ['a-folder'])
    assert.equal((await fetch(`${app.url}/api/v2/assets/${id}/content`)).status, 200)
  }))

/** One bit of a stored file, somewhere in its middle. */
async function flipBit(path: string): Promise<void> {
  const bytes = await readFile(path)
  bytes[bytes.length >> 1] ^= 4
  await writeFile(path, bytes)
}

async function uploadBytes(app: TestApp, bytes: Uint8Array<ArrayBuffer>): Promise<{ id: string; hash: string }> {
  const form = new FormData()
  form.set('content_type', 'application/octet-stream')
  form.set('file_path', 'data.bin')
  form.set('file', new Blob([bytes]), 'data.bin')
  return (await (await fetch(`${app.url}/api/v2/assets`, { method: 'POST', body: form })).json()) as never
}

/** The whole answer, or the word that it broke off. */
async function download(url: string, headers: Record<string, string> = {}): Promise<Buffer | number | 'broken off'> {
  try {
    const answer = await fetch(url, { headers })
    return answer.ok ? Buffer.from(await answer.arrayBuffer()) : answer.status
  } catch {
    return 'broken off'
  }
}

for (const size of [13, 100_000, 20_000_000]) {
  test(`${size} bytes that were damaged on the disk are never served as whole, and sending them again mends them`, async () => {
    await using app = await startStoreApp()
    const bytes = new Uint8Array(size).map((_, index) => index % 251)
    const { id, hash } = await uploadBytes(app, bytes)
    const url = `${app.url}/api/v2/assets/${id}/content`
    assert.deepEqual(await download(url), Buffer.from(bytes))
    await flipBit(pathOf(app.dataDir, hash))
    // What is small is looked at before its first byte leaves.
    assert.equal(await download(url), size <= 262_144 ? 404 : 'broken off')
    assert.equal(await download(url), 404)
    await uploadBytes(app, bytes)
    assert.deepEqual(await download(url), Buffer.from(bytes))

    // Nobody reads them in between: the upload mends them all the same.
    await flipBit(pathOf(app.dataDir, hash))
    await uploadBytes(app, bytes)
    assert.deepEqual(await download(url), Buffer.from(bytes))
  })
}

test('the refusal of damaged bytes carries nothing of them', async () => {
  await using app = await startStoreApp()
  const { id, hash } = await uploadBytes(app, new Uint8Array(1000).fill(7))
  await flipBit(pathOf(app.dataDir, hash))
  const answer = await fetch(`${app.url}/api/v2/assets/${id}/content`)
  assert.deepEqual([answer.status, answer.headers.get('etag')], [404, null])
})

test('a part of damaged bytes is not served either', async () => {
  await using app = await startStoreApp()
  const { id, hash } = await uploadBytes(app, new Uint8Array(1_000_000).fill(7))
  await flipBit(pathOf(app.dataDir, hash))
  const part = await download(`${app.url}/api/v2/assets/${id}/content`, { range: 'bytes=0-99' })
  assert.equal(part, 404)
})

/** Overwrites the first page of everything of this kind that belongs to the jobs. */
async function damagePages(dataDir: string, kind: 'index' | 'table', table = 'job'): Promise<void> {
  const path = join(dataDir, 'atelier.db')
  const database = new DatabaseSync(path)
  const pages = database
    .prepare('SELECT rootpage FROM sqlite_schema WHERE type = ? AND tbl_name = ?')
    .all(kind, table)
    .map((row) => Number(row['rootpage']))
  database.close()
  assert.notEqual(pages.length, 0)
  const bytes = await readFile(path)
  for (const page of pages) bytes.fill(0xab, (page - 1) * 4096, page * 4096)
  await writeFile(path, bytes)
}

const HELLO = {
  1: { class_type: 'PrimitiveString', inputs: { value: 'hello' } },
  2: { class_type: 'PreviewAny', inputs: { source: ['1', 0] } },
}

test('damaged indexes are made anew on the way, and no job hangs on them', () =>
  withStoppedApp(async (dataDir) => {
    await damagePages(dataDir, 'index')
    await using app = await startTestApp({ dataDir })
    const submitted = await fetch(`${app.url}/api/v2/jobs`, {
      method: 'POST',
      body: JSON.stringify({ workflow: HELLO }),
    })
    assert.equal(submitted.status, 201)
    const { id } = (await submitted.json()) as { id: string }
    await (await fetch(`${app.url}/api/v2/jobs/${id}/events`)).text()
    const job = (await (await fetch(`${app.url}/api/v2/jobs/${id}`)).json()) as { status: string }
    assert.equal(job.status, 'succeeded')
    assert.equal((await fetch(`${app.url}/readyz`)).status, 200)
    assert.deepEqual(verifyDatabase(dataDir).problems, [])
  }))

test('what cannot be mended ends the service, and the next start says what is damaged', () =>
  withStoppedApp(async (dataDir) => {
    await damagePages(dataDir, 'table')
    const app = await startTestApp({ dataDir })
    const submitted = await fetch(`${app.url}/api/v2/jobs`, {
      method: 'POST',
      body: JSON.stringify({ workflow: HELLO }),
    })
    assert.equal(submitted.status, 500)
    assert.match((await app.app.failed).message, /damaged/)
    await app.app[Symbol.asyncDispose]()
    await assert.rejects(startStoreApp({ dataDir }), { name: 'StoreOpenError', message: /damaged .*backup/ })
  }))

test('verify finds what is damaged and what is missing, beside a running service too', async () => {
  await using app = await startStoreApp()
  const verify = (...flags: string[]) => runAtelier(['verify', '--data-dir', app.dataDir, ...flags])
  const kept = await uploadText(app, 'kept')
  const damaged = await uploadText(app, 'damaged')
  const missing = await uploadText(app, 'missing')
  assert.deepEqual(await verify(), { code: 0, stdout: '3 files, 0.0 MiB read: all is well\n', stderr: '' })
  await flipBit(pathOf(app.dataDir, damaged.hash))
  await rm(pathOf(app.dataDir, missing.hash))
  const { code, stdout } = await verify('--set-aside')
  assert.equal(code, 1)
  const hex = (asset: { hash: string }) => asset.hash.replace('blake3:', '')
  assert.match(stdout, new RegExp(`^damaged +${hex(damaged)}$`, 'm'))
  assert.match(stdout, new RegExp(`^missing +${hex(missing)}$`, 'm'))
  assert.ok(!stdout.includes(hex(kept)))
  for (const text of ['damaged', 'missing']) await uploadBytes(app, new TextEncoder().encode(text))
  assert.equal((await verify()).code, 0)
})

/** Puts the bytes where earlier builds kept small ones, with a hundred damaged ones beside them. */
async function moveIntoDatabase(dataDir: string, hash: string): Promise<{ count(): number } & Disposable> {
  const database = new DatabaseSync(join(dataDir, 'atelier.db'))
  const insert = database.prepare('INSERT INTO small_bytes (hash, bytes) VALUES (?, ?)')
  insert.run(hash.replace('blake3:', ''), await readFile(pathOf(dataDir, hash)))
  for (let index = 0; index < 100; index++) {
    insert.run(index.toString(16).padStart(64, '0'), new Uint8Array([index]))
  }
  await rm(pathOf(dataDir, hash))
  return {
    count: () => Number(database.prepare('SELECT count(*) AS n FROM small_bytes').get()?.['n']),
    [Symbol.dispose]: () => database.close(),
  }
}

test('small outputs that an earlier build kept in its database become files with a start', () =>
  withStoppedApp(async (dataDir, { id, hash }) => {
    using rows = await moveIntoDatabase(dataDir, hash)
    await using app = await startStoreApp({ dataDir })
    assert.deepEqual([rows.count(), await readFile(pathOf(dataDir, hash), 'utf8')], [0, 'worth keeping'])
    assert.deepEqual(await download(`${app.url}/api/v2/assets/${id}/content`), Buffer.from('worth keeping'))
  }))

test('verify reads small outputs in the database, and changes neither these nor what a service is writing', () =>
  withStoppedApp(async (dataDir, { hash }) => {
    using rows = await moveIntoDatabase(dataDir, hash)
    const writing = join(dataDir, 'blobs', 'tmp', 'upload')
    await writeFile(writing, 'half of it')
    const verified = await runAtelier(['verify', '--data-dir', dataDir])
    assert.deepEqual(verified, { code: 0, stdout: '1 files, 0.0 MiB read: all is well\n', stderr: '' })
    assert.deepEqual([rows.count(), await readFile(writing, 'utf8')], [101, 'half of it'])
  }))

test('small outputs that find no room as files are served from the database until the next start', () =>
  withStoppedApp(async (dataDir, { id, hash }) => {
    using rows = await moveIntoDatabase(dataDir, hash)
    const create = () => Promise.reject(Object.assign(new Error('ENOSPC: no space left'), { code: 'ENOSPC' }))
    const overrides = { engine: createFakeEngine(), files: { ...diskFileOps, create } }
    const full = await startTestApp({ dataDir, overrides })
    const url = `${full.url}/api/v2/assets/${id}/content`
    assert.deepEqual(await download(url), Buffer.from('worth keeping'))
    assert.deepEqual(await download(url, { range: 'bytes=6-9' }), Buffer.from('keep'))
    await full.app[Symbol.asyncDispose]()
    assert.equal(rows.count(), 101)
    await using app = await startStoreApp({ dataDir })
    assert.equal(rows.count(), 0)
    assert.deepEqual(await download(`${app.url}/api/v2/assets/${id}/content`), Buffer.from('worth keeping'))
  }))

test('small outputs stay where they are when the folder of the bytes belongs to another database', () =>
  withStoppedApp(async (dataDir, { hash }) => {
    using rows = await moveIntoDatabase(dataDir, hash)
    await writeFile(join(dataDir, 'blobs', 'id'), 'somebody else')
    await assert.rejects(startStoreApp({ dataDir }), /belong to another database/)
    assert.equal(rows.count(), 101)
  }))

test('small outputs whose index is damaged become files, and the start does not wait for ever', () =>
  withStoppedApp(async (dataDir, { hash }) => {
    {
      using _ = await moveIntoDatabase(dataDir, hash)
    }
    await damagePages(dataDir, 'index', 'small_bytes')
    await using app = await startStoreApp({ dataDir })
    assert.ok(app.url)
  }))

test('verify goes on with the files when the whole database makes no sense', async () => {
  const app = await startStoreApp()
  try {
    const { hash } = await uploadText(app, 'kept')
    await app.app[Symbol.asyncDispose]()
    const bytes = await readFile(join(app.dataDir, 'atelier.db'))
    await writeFile(join(app.dataDir, 'atelier.db'), bytes.fill(0xab, 0, 4096))
    const { code, stdout, stderr } = await runAtelier(['verify', '--data-dir', app.dataDir])
    assert.deepEqual([code, stderr], [1, ''])
    assert.match(stdout, /^database +\S.*\n1 files/m)
    assert.ok(!stdout.includes(hash.replace('blake3:', '')))
  } finally {
    await rm(app.dataDir, { recursive: true, force: true })
  }
})

test('verify says what SQLite says of a damaged database', () =>
  withStoppedApp(async (dataDir) => {
    await damagePages(dataDir, 'index')
    const { code, stdout } = await runAtelier(['verify', '--data-dir', dataDir])
    assert.equal(code, 1)
    assert.match(stdout, /^database +\S/m)
  }))

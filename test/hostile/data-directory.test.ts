/** What an operator may find in the data folder one morning: the service says what is wrong, and never makes it worse. */
import assert from 'node:assert/strict'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { startTestApp, type TestApp } from '../support/start-app.ts'

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
  const app = await startTestApp()
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
      await assert.rejects(startTestApp({ dataDir }), /belong to another database/, `${time} start`)
    }
    assert.equal(await readFile(pathOf(dataDir, hash), 'utf8'), 'worth keeping')
  }))

test('with its own database back, the service goes on', () =>
  withStoppedApp(async (dataDir, { id }) => {
    const database = await readFile(join(dataDir, 'atelier.db'))
    await removeDatabase(dataDir)
    await assert.rejects(startTestApp({ dataDir }), /belong to another database/)
    await removeDatabase(dataDir)
    await writeFile(join(dataDir, 'atelier.db'), database)
    await using app = await startTestApp({ dataDir })
    const content = await fetch(`${app.url}/api/v2/assets/${id}/content`)
    assert.equal(await content.text(), 'worth keeping')
  }))

test('an emptied folder of bytes keeps nobody from starting', () =>
  withStoppedApp(async (dataDir, { id }) => {
    await rm(join(dataDir, 'blobs'), { recursive: true })
    await using app = await startTestApp({ dataDir })
    assert.equal((await fetch(`${app.url}/api/v2/assets/${id}/content`)).status, 404)
    assert.equal((await uploadText(app, 'something new')).hash.slice(0, 7), 'blake3:')
  }))

test('a damaged database is named, with what to do', () =>
  withStoppedApp(async (dataDir) => {
    await writeFile(join(dataDir, 'atelier.db'), 'this is no database '.repeat(500))
    await assert.rejects(startTestApp({ dataDir }), {
      name: 'StoreOpenError',
      message: /atelier\.db is damaged .*backup/,
    })
  }))

test('foreign things among the unfinished files do not matter', () =>
  withStoppedApp(async (dataDir, { id }) => {
    await mkdir(join(dataDir, 'blobs', 'tmp', 'a-folder'))
    await writeFile(join(dataDir, 'blobs', 'tmp', 'left-over'), 'half')
    await writeFile(join(dataDir, 'blobs', 'README'), 'not ours')
    await using app = await startTestApp({ dataDir })
    assert.deepEqual(await readdir(join(dataDir, 'blobs', 'tmp')), ['a-folder'])
    assert.equal((await fetch(`${app.url}/api/v2/assets/${id}/content`)).status, 200)
  }))

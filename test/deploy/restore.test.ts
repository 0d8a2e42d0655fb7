/** The backup of docs/scale.md and the way back from it: what was acknowledged before its end is there, whole, and goes on. */
import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { type SpawnedServer, spawnServer } from '../support/app/spawn-server.ts'
import { runAtelier } from '../support/cli/atelier.ts'
import { call } from '../support/clients/call.ts'
import { loseAndRestore, takeBackup } from '../support/postgres/base-backup.ts'
import { startPostgres } from '../support/postgres/postgres-server.ts'
import { waitUntil } from '../support/wait-until.ts'

const PRICES = JSON.stringify({ pools: { '*': { perSecondMicros: 500, minimumMicros: 1000, holdMicros: 30_000 } } })

interface Picture {
  readonly id: string
  readonly bytes: Buffer
}

function pictureOf(color: number): string {
  const workflow = {
    1: { class_type: 'EmptyImage', inputs: { width: 32, height: 32, batch_size: 1, color } },
    2: { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'restored' } },
  }
  return JSON.stringify({ workflow })
}

class Client {
  readonly #url: string
  readonly #headers: Record<string, string>

  constructor({ url }: SpawnedServer, key: string) {
    this.#url = url
    this.#headers = { authorization: `Bearer ${key}` }
  }

  async submit(color: number): Promise<string> {
    const answer = await call(this.#url, '/api/v2/jobs', {
      method: 'POST',
      body: pictureOf(color),
      headers: this.#headers,
    })
    assert.equal(answer.status, 201, answer.text)
    return answer.json.id
  }

  find(id: string) {
    return call(this.#url, `/api/v2/jobs/${id}`, { headers: this.#headers })
  }

  /** The picture of a job, once it has one. */
  async picture(id: string): Promise<Picture> {
    const done = await waitUntil(async () => {
      const { json } = await this.find(id)
      assert.ok(['queued', 'running', 'succeeded'].includes(json.status), JSON.stringify(json))
      return json.status === 'succeeded' ? json : null
    })
    const { url } = done.outputs[0]
    const address = new URL(url, this.#url)
    let answer = await call(this.#url, `${address.pathname}${address.search}`, { headers: this.#headers })
    if (answer.status === 302) {
      const next = new URL(answer.headers.location ?? '', this.#url)
      answer = await call(this.#url, `${next.pathname}${next.search}`)
    }
    assert.equal(answer.status, 200)
    return { id, bytes: answer.bytes }
  }
}

test('a service that lost its server and its bytes comes back from a backup that was made while it worked', async () => {
  await using server = await startPostgres({ isDurable: true })
  const home = mkdtempSync(path.join(tmpdir(), 'atelier-restore-'))
  const [dataDir, restored] = [path.join(home, 'data'), path.join(home, 'restored')]
  const env = {
    ATELIER_DATABASE: server.url,
    ATELIER_SECRET_KEY: 'ab'.repeat(32),
    ATELIER_KIND: 'cloud',
    ATELIER_ADMIN_TOKEN: 'a-token-of-the-operator',
    ATELIER_PRICES: PRICES,
  }
  const atelier = async (...args: string[]) => {
    const { code, stdout, stderr } = await runAtelier(args, { cwd: home, env })
    assert.equal(code, 0, `atelier ${args.join(' ')}: ${stdout}${stderr}`)
    return stdout
  }
  try {
    await atelier('migrate')
    await using first = await spawnServer(['--data-dir', dataDir, '--workers', '2'], env)
    await atelier('accounts', 'create', 'acme', '--url', first.url)
    await atelier('credits', 'grant', '--account', 'acme', '--usd', '25', '--url', first.url)
    const { text: key } = JSON.parse(await atelier('keys', 'create', '--account', 'acme', '--json', '--url', first.url))
    const client = new Client(first, key)

    const before = await client.picture(await client.submit(1))
    const waiting: string[] = []
    const backup = await takeBackup(server, {
      folder: path.join(home, 'backup'),
      async meanwhile() {
        for (const color of [2, 3, 4]) waiting.push(await client.submit(color))
      },
    })
    // After the database, and within blobGrace of it.
    cpSync(path.join(dataDir, 'blobs'), path.join(restored, 'blobs'), { recursive: true })
    const after = await client.submit(5)

    await first.killNow()
    await loseAndRestore(server, backup)
    rmSync(dataDir, { recursive: true })

    assert.match(await atelier('verify', '--data-dir', restored), /all is well/)
    await using second = await spawnServer(['--data-dir', restored, '--workers', '2'], env)
    const again = new Client(second, key)
    assert.deepEqual(await again.picture(before.id), before, 'what had ended is there, byte for byte')
    for (const id of waiting)
      assert.ok((await again.picture(id)).bytes.length > 0, 'what was under way is run to its end')
    assert.equal((await again.find(after)).status, 404, 'what came after the backup is not there')
    assert.ok((await again.picture(await again.submit(6))).bytes.length > 0)
    await atelier('credits', 'check', '--url', second.url)
    assert.equal(await second.terminate(), 0)
    assert.match(await atelier('verify', '--data-dir', restored), /all is well/)
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
})

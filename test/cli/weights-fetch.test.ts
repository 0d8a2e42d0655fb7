/** `atelier weights fetch` into a folder of models: guarded, continued, checked, never over another file. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type FileServer, serveFolder } from '../support/builds/file-server.ts'
import { tinyModel } from '../support/builds/packages.ts'
import { runInProcess } from '../support/cli/in-process.ts'

const sha256Of = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

describe('atelier weights fetch', () => {
  let folder: string
  let server: FileServer
  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'atelier-fetch-'))
    await mkdir(path.join(folder, 'served'))
    server = await serveFolder(path.join(folder, 'served'))
  })
  after(async () => {
    await server[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })

  const served = async (name: string, bytes: Buffer) => {
    await writeFile(path.join(folder, 'served', name), bytes)
    return `${server.origin}/${name}`
  }
  const fetchInto = (address: string, ...flags: string[]) =>
    runInProcess(
      ['weights', 'fetch', address, '--folder', 'loras/x', '--into', 'models', '--origin', server.origin, ...flags],
      { cwd: folder, env: { ATELIER_DATA_DIR: path.join(folder, 'data') } },
    )
  const there = () => readdir(path.join(folder, 'models/loras/x')).catch(() => [])

  test('the file appears whole under its name, and a second fetch asks nobody', async () => {
    const bytes = tinyModel('style')
    const address = await served('style.safetensors', bytes)
    const told = await fetchInto(address)
    assert.equal(told.code, 0, told.stderr)
    const file = path.join(folder, 'models/loras/x/style.safetensors')
    assert.equal(told.stdout, `${file} (sha256 ${sha256Of(bytes)})\n`)
    assert.deepEqual(await readFile(file), bytes)
    assert.equal((await fetchInto(address)).code, 0)
    // What the address gave first it must give again.
    await served('style.safetensors', tinyModel('other'))
    const changed = await fetchInto(address, '--name', 'again.safetensors')
    assert.equal(changed.code, 1)
    assert.match(changed.stderr, /^atelier: loras\/x\/again\.safetensors: its sha256 is \w+, and \w+ was wanted/m)
    assert.deepEqual(await there(), ['style.safetensors'])
  })

  test('a connection that breaks is gone on with, by the next command too', async () => {
    const bytes = tinyModel('x'.repeat(8_000_000))
    const address = await served('large.safetensors', bytes)
    server.cutAfter = 1_000_000
    const broken = await fetchInto(address)
    assert.equal(broken.code, 1)
    assert.match(broken.stderr, /; run the same command again to go on$/m)
    server.cutAfter = null
    const before = server.asked.length
    assert.equal((await fetchInto(address, '--sha256', sha256Of(bytes))).code, 0)
    assert.match(String(server.asked[before]?.headers.range), /^bytes=[1-9]\d*-$/)
    assert.deepEqual(await readFile(path.join(folder, 'models/loras/x/large.safetensors')), bytes)
  })

  test('another file of the name stays, and a wrong hash, a pickle and what is no model bring nothing', async () => {
    const kept = path.join(folder, 'models/loras/x/mine.safetensors')
    await mkdir(path.dirname(kept), { recursive: true })
    await writeFile(kept, 'mine')
    const address = await served('mine.safetensors', tinyModel('theirs'))
    const taken = await fetchInto(address)
    assert.deepEqual([taken.code, await readFile(kept, 'utf8')], [1, 'mine'])
    assert.match(taken.stderr, /mine\.safetensors is another file; choose a --name/)
    const names = await there()
    const cases = [
      [await served('a.safetensors', tinyModel('a')), '--sha256', '0'.repeat(64)],
      [await served('b.ckpt', tinyModel('b'))],
      [await served('c.safetensors', Buffer.from('<html>no</html>'))],
      [`${server.origin}/nowhere.safetensors`],
      [await served('d.safetensors', tinyModel('d')), '--name', '../d.safetensors'],
    ]
    for (const [from, ...flags] of cases) assert.equal((await fetchInto(String(from), ...flags)).code, 1, String(from))
    assert.deepEqual(await there(), names)
  })

  test('without --origin nothing inside is reached, and headers go to their host alone', async () => {
    const address = await served('inner.safetensors', tinyModel('inner'))
    const before = server.asked.length
    const { code, stderr } = await fetchInto(address, '--origin', 'http://127.0.0.1:1')
    assert.equal(code, 1)
    assert.match(stderr, /^atelier: loras\/x\/inner\.safetensors: /m)
    assert.equal(server.asked.length, before)
    const headers = {
      '127.0.0.1': { authorization: 'Bearer of-this-host' },
      'elsewhere.example': { 'x-other': 'secret' },
    }
    await writeFile(path.join(folder, 'headers.json'), JSON.stringify(headers))
    const told = await fetchInto(address, '--headers', 'headers.json')
    assert.equal(told.code, 0, told.stderr)
    const asked = server.asked.at(-1)?.headers
    assert.deepEqual([asked?.authorization, asked?.['x-other']], ['Bearer of-this-host', undefined])
    assert.ok(!(told.stdout + told.stderr).includes('of-this-host'))
  })
})

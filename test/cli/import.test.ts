/** `atelier import` on a real service: a folder as ComfyUI has it with everything that goes wrong in one, and a proxy's state. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { createServer, request as forward } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, test } from 'node:test'
import sharp from 'sharp'
import { openBlake3 } from '../../lib/files/blake3.ts'
import { readChunks, writeChunks } from '../../lib/files/png-chunks.ts'
import { startTestApp, type TestApp } from '../support/app/start-app.ts'
import { runInProcess } from '../support/cli/in-process.ts'

let folder: string
let app: TestApp
let picture: Buffer
before(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'atelier-import-test-'))
  app = await startTestApp()
  picture = await sharp({ create: { width: 4, height: 4, channels: 3, background: '#336699' } })
    .png()
    .toBuffer()
})
after(async () => {
  await app[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

function write(name: string, content: string | Uint8Array): string {
  const file = path.join(folder, name)
  mkdirSync(path.dirname(file), { recursive: true })
  writeFileSync(file, content)
  return file
}

const run = (...args: string[]) => runInProcess(['import', ...args], { cwd: folder })
const bring = (...args: string[]) => run(...args, '--base-url', app.url)
const get = (link: string) => fetch(`${app.url}${link}`)
const savedNames = async () => {
  const listed = await get('/api/userdata?dir=workflows&recurse=true')
  return (listed.ok ? await listed.json() : []) as string[]
}
const inputNames = async () => {
  const { assets } = (await (await get('/console/v1/assets?limit=500')).json()) as { assets: { name: string }[] }
  return assets.map(({ name }) => name).sort()
}

function saved(title: string, seed = 1) {
  const node = { id: 1, type: 'EmptyImage', widgets_values: [seed, title] }
  return JSON.stringify({ nodes: [node, { id: 2, type: title }], links: [[1, 1, 0, 2, 0, 'IMAGE']], version: 0.4 })
}

function carrying(texts: Readonly<Record<string, string>>): Buffer {
  const [head, ...rest] = readChunks(picture)
  const chunks = Object.entries(texts).map(([name, text]) => ({
    type: 'tEXt',
    body: Buffer.from(`${name}\0${text}`, 'latin1'),
  }))
  return Buffer.from(writeChunks([head, ...chunks, ...rest]))
}

describe('atelier import comfyui', () => {
  before(() => {
    write('ComfyUI/user/default/workflows/plain.json', saved('SaveImage'))
    write('ComfyUI/user/default/workflows/déjà vu ☂/été 1.json', saved('PreviewImage'))
    write('ComfyUI/user/default/workflows/broken.json', '{"nodes": [')
    write('ComfyUI/user/default/workflows/list.json', '[1, 2]')
    write('ComfyUI/user/default/workflows/notes.txt', 'mine')
    write('ComfyUI/user/default/workflows/.index.json', '{}')
    write('ComfyUI/input/photo.png', picture)
    write('ComfyUI/input/same.png', picture)
    write('ComfyUI/input/sub dir/naïve ☂.png', randomBytes(2000))
    write('ComfyUI/input/models/odd.png', picture)
    truncateSync(write('ComfyUI/input/huge.mp4', ''), 5 * 1024 ** 3)
    symlinkSync('.', path.join(folder, 'ComfyUI/input/loop'))
    symlinkSync('/etc/hostname', path.join(folder, 'ComfyUI/input/link.png'))
    const made = { prompt: '{"1": {"class_type": "K", "inputs": {"seed": NaN}}}', workflow: saved('SaveImage', 1) }
    write('ComfyUI/output/old.png', carrying(made))
    utimesSync(path.join(folder, 'ComfyUI/output/old.png'), 1000, 1000)
    write('ComfyUI/output/day/new.png', carrying({ ...made, workflow: saved('SaveImage', 2) }))
    write('ComfyUI/output/plain.png', picture)
    write('ComfyUI/output/odd.png', carrying({ workflow: '{"no": 1}' }))
  })

  test('a dry run says what would be brought, and stores nothing', async () => {
    const { code, stdout, stderr } = await bring('comfyui', 'ComfyUI', '--dry-run')
    assert.equal(code, 1, stderr)
    assert.match(
      stdout,
      /^workflows: 2 would be brought, 0 already there\ninputs: 4 would be brought, 0 already there\n/,
    )
    assert.match(stderr, /would bring inputs input\/sub dir\/naïve ☂\.png\n/)
    assert.deepEqual([await savedNames(), await inputNames()], [[], []])
  })

  test('brings workflows and inputs, and says of everything else why not', async () => {
    const { code, stdout } = await bring('comfyui', 'ComfyUI')
    assert.equal(code, 1)
    assert.equal(
      stdout.replace(/(valid JSON): .*/, '$1'),
      [
        'workflows: 2 brought, 0 already there',
        'inputs: 4 brought, 0 already there',
        '1 files beside the workflows are no JSON',
        'not brought: 5',
        '  user/default/workflows/broken.json is not valid JSON',
        '  user/default/workflows/list.json is JSON, and holds no workflow',
        '  input/link.png is a symbolic link, and these are not followed',
        '  input/loop is a symbolic link, and these are not followed',
        '  input/huge.mp4 is larger than --max-file allows',
        '',
      ].join('\n'),
    )
    assert.deepEqual(await savedNames(), ['déjà vu ☂/été 1.json', 'plain.json'])
    assert.deepEqual(await inputNames(), ['input/models/odd.png', 'photo.png', 'same.png', 'sub dir/naïve ☂.png'])
  })

  test('a second run brings nothing', async () => {
    const { code, stdout } = await bring('comfyui', 'ComfyUI', '--json')
    assert.equal(code, 1)
    const { workflows, inputs, not_brought } = JSON.parse(stdout)
    assert.deepEqual(
      [workflows, inputs],
      [
        { brought: 0, already_there: 2 },
        { brought: 0, already_there: 4 },
      ],
    )
    assert.equal(not_brought.length, 5)
    assert.equal((await inputNames()).length, 4)
  })

  test('graphs find their files under the names that they had', async () => {
    const load = (image: string) => ({ class_type: 'LoadImage', inputs: { image } })
    const save = { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'x' } }
    for (const name of ['models/odd.png', 'photo.png [input]', 'none.png']) {
      const body = JSON.stringify({ workflow: { '1': load(name), '2': save } })
      const answer = await fetch(`${app.url}/api/v2/jobs/validate`, { method: 'POST', body })
      assert.equal(((await answer.json()) as { is_accepted?: boolean }).is_accepted, name !== 'none.png', name)
    }
  })

  test('names that mean something else here are taken only where that is wished', async () => {
    write('other/input/photo.png', 'other bytes')
    write('other/user/default/workflows/plain.json', saved('Other'))
    const kept = await bring('comfyui', 'other')
    assert.equal(kept.code, 1)
    assert.match(
      kept.stdout,
      /plain\.json has the name of another workflow here;[^\n]*\n {2}input\/photo\.png has the name of another file here;/,
    )
    const taken = await bring('comfyui', 'other', '--overwrite')
    assert.equal(taken.code, 0, taken.stdout)
    assert.match(await (await get('/api/userdata/workflows%2Fplain.json')).text(), /"Other"/)
    assert.equal(await (await get('/view?filename=photo.png&type=input')).text(), 'other bytes')
  })

  test('of outputs: the newest workflow of each shape, and the files themselves', async () => {
    const { stdout } = await bring('comfyui', 'ComfyUI', '--bring', 'carried,outputs')
    assert.match(
      stdout,
      /^outputs: 4 brought, 0 already there\nworkflows: 1 brought, 0 already there\n1 outputs carry no workflow\nnot brought: 1\n {2}odd\.png carries something that is no workflow\n$/,
    )
    const [name] = (await savedNames()).filter((one) => one.startsWith('from outputs/'))
    assert.match(name ?? '', /^from outputs\/day - new \([0-9a-f]{8}\)\.json$/)
    const file = await get('/view?filename=new.png&subfolder=day&type=output')
    assert.deepEqual(
      Buffer.from(await file.arrayBuffer()),
      carrying({ prompt: '{"1": {"class_type": "K", "inputs": {"seed": NaN}}}', workflow: saved('SaveImage', 2) }),
    )
    write('ComfyUI/output/newest.png', carrying({ workflow: saved('SaveImage', 3) }))
    assert.match(
      (await bring('comfyui', 'ComfyUI', '--bring', 'carried')).stdout,
      /^workflows: 0 brought, 1 already there\n/,
    )
  })

  test('out of a running server, the workflows of its history', async () => {
    const image = { class_type: 'EmptyImage', inputs: { width: 8, height: 8, batch_size: 1, color: 0 } }
    const prompt = { '1': image, '2': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'h' } } }
    const { prompt_id } = (await (
      await fetch(`${app.url}/prompt`, { method: 'POST', body: JSON.stringify({ prompt }) })
    ).json()) as { prompt_id: string }
    await fetch(`${app.url}/api/v2/jobs/${prompt_id}/events`).then((events) => events.text())
    const { code, stdout } = await bring('comfyui', 'empty', '--history', app.url)
    assert.equal(code, 0)
    assert.equal(stdout, 'workflows: 1 brought, 0 already there\n')
    assert.ok((await savedNames()).some((name) => name.startsWith(`from history/${prompt_id} (`)))
  })

  test('a file that goes while others are sent is told, and the rest is brought', async () => {
    const [first, second, third] = ['1', '2', '3'].map((name) => write(`going/input/${name}.bin`, randomBytes(500)))
    assert.ok(first && third)
    const target = new URL(app.url)
    const between = createServer((incoming, outgoing) => {
      // Not before something is sent, which is after the folder was read.
      if (incoming.url?.endsWith('/from-hash')) rmSync(second as string, { force: true })
      const { method, headers, url } = incoming
      const passed = forward(
        { host: target.hostname, port: target.port, method, path: url, headers: { ...headers, host: target.host } },
        (answer) => {
          outgoing.writeHead(answer.statusCode ?? 500, answer.headers)
          answer.pipe(outgoing)
        },
      )
      incoming.pipe(passed)
    }).listen(0, '127.0.0.1')
    await new Promise((resolve) => between.once('listening', resolve))
    const base = `http://127.0.0.1:${(between.address() as AddressInfo).port}`
    const { code, stdout } = await run('comfyui', 'going', '--base-url', base)
    between.closeAllConnections()
    between.close()
    assert.equal(code, 1)
    assert.equal(stdout, 'inputs: 2 brought, 0 already there\nnot brought: 1\n  input/2.bin is gone\n')
  })

  test('says what is wrong with the call, the key and the server', async () => {
    await using locked = await startTestApp({ settings: { token: 'right' } })
    const at = (url: string, ...args: string[]) => run('comfyui', 'other', '--base-url', url, ...args)
    assert.equal((await at(locked.url, '--token', 'right')).code, 0)
    const wrong = await at(locked.url, '--token', 'wrong')
    assert.deepEqual([wrong.code, /^unauthorized: /.test(wrong.stderr)], [1, true], wrong.stderr)
    assert.equal((await at('http://127.0.0.1:9')).code, 3)
    for (const args of [
      ['--bring', 'all'],
      ['--max-file', 'big'],
      ['--input-dir', 'none'],
      ['--history', 'here'],
    ])
      assert.equal((await at(app.url, ...args)).code, 2, args.join(' '))
    assert.match((await bring('comfyui', 'nowhere')).stderr, /has none of ComfyUI's folders/)
  })
})

describe('atelier import proxy', () => {
  test('brings the workflows of its jobs, with names for its ids, and its uploads', async () => {
    const blake3 = await openBlake3()
    const bytes = randomBytes(300)
    write('Proxied/input/up/cat.bin', bytes)
    write('Proxied/input/changed.bin', 'other bytes')
    write('secret.bin', bytes)
    mkdirSync(path.join(folder, 'state'))
    using database = new DatabaseSync(path.join(folder, 'state/state.sqlite3'))
    database.exec(`PRAGMA journal_mode=WAL;
      CREATE TABLE jobs (id TEXT PRIMARY KEY, created_at TEXT NOT NULL, client_id TEXT NOT NULL, metadata TEXT, priority INTEGER, workflow TEXT NOT NULL);
      CREATE TABLE assets (id TEXT PRIMARY KEY, hash TEXT NOT NULL, size_bytes INTEGER NOT NULL, content_type TEXT NOT NULL, file_path TEXT,
        created_at TEXT NOT NULL, comfy_ref TEXT, disk_path TEXT, tags TEXT NOT NULL DEFAULT '[]')`)
    const asset = database.prepare(`INSERT INTO assets VALUES (?, ?, 1, 'image/png', ?, '2026-09-01', ?, ?, '[]')`)
    const reference = (filename: string, subfolder = '') => JSON.stringify({ filename, subfolder, type: 'input' })
    const hash = (content: Uint8Array | string) => `blake3:${blake3.hash(Buffer.from(content))}`
    asset.run('a-1', hash(bytes), 'cat.bin', reference('cat.bin', 'up'), null)
    asset.run('a-2', hash('as it was'), 'changed.bin', reference('changed.bin'), null)
    asset.run('a-3', hash(bytes), 'secret.bin', reference('secret.bin', '../..'), null)
    asset.run('a-4', hash('weights'), 'm.safetensors', null, '/models/loras/m.safetensors')
    const output = Buffer.from('{"j": "x", "f": "o.png", "s": "", "t": "output"}').toString('base64url')
    const graph = (seed: string) =>
      `{"1": {"class_type": "LoadImage", "inputs": {"image": {"__type": "core/ASSET", "info": {"id": "a-1"}}}},
        "2": {"class_type": "LoadImage", "inputs": {"image": {"__type": "core/ASSET", "info": {"id": "asset_${output}.sig"}}}},
        "3": {"class_type": "K", "inputs": {"seed": ${seed}}}}`
    const job = database.prepare(`INSERT INTO jobs VALUES (?, ?, 'c', NULL, NULL, ?)`)
    job.run('job-1', '2026-09-01T00:00:00+00:00', graph('1'))
    job.run('job-2', '2026-09-02T00:00:00+00:00', graph('18446744073709551615'))
    job.run('job-3', '2026-09-03T00:00:00+00:00', 'no JSON')

    // The proxy's own connection is open still, and what it wrote last stands in its log.
    const { code, stdout } = await bring('proxy', 'state', '--comfyui', 'Proxied')
    assert.equal(code, 1)
    assert.equal(
      stdout.replace(/(valid JSON): .*/, '$1'),
      [
        'workflows: 1 brought, 0 already there',
        'inputs: 1 brought, 0 already there',
        '1 assets are weights or outputs and stay where they are',
        'not brought: 3',
        '  job-3 has a graph that is not valid JSON',
        '  input/changed.bin is no longer the file that was uploaded',
        '  input/../../secret.bin leads out of its folder',
        '',
      ].join('\n'),
    )
    const [name] = (await savedNames()).filter((one) => one.startsWith('from proxy/job-2 ('))
    const text = await (await fetch(`${app.url}/api/userdata/${encodeURIComponent(`workflows/${name}`)}`)).text()
    assert.match(text, /"image":"up\/cat\.bin"[\s\S]*"image":"o\.png \[output\]"[\s\S]*"seed":18446744073709551615/)
    assert.match(
      (await bring('proxy', 'state', '--comfyui', 'Proxied')).stdout,
      /^workflows: 0 brought, 1 already there\ninputs: 0 brought, 1 already there\n/,
    )
    assert.match((await bring('proxy', 'state')).stdout, /3 uploads lie in ComfyUI's folder; name it with --comfyui/)
  })

  test('says that there is no state, or that it cannot be read', async () => {
    assert.match((await bring('proxy', 'nowhere')).stderr, /keeps one in the folder of its --state-dir/)
    write('garbage/state.sqlite3', 'garbage '.repeat(200))
    const { code, stderr } = await bring('proxy', 'garbage')
    assert.deepEqual([code, /^atelier: the state of the proxy cannot be read: /.test(stderr)], [1, true], stderr)
  })
})

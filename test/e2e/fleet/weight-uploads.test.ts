/** Files of weights that an operator puts on a server which the service launched: in parts, checked, confined, and removed again. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { openBlake3 } from '../../../lib/files/blake3.ts'
import { pictureGraph } from '../../support/app/fleet-app.ts'
import { type SpawnedServer, spawnServer } from '../../support/app/spawn-server.ts'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { runInProcess } from '../../support/cli/in-process.ts'
import { call } from '../../support/clients/call.ts'
import { startFakeComfy } from '../../support/engines/fake-comfyui/fake-comfyui.ts'
import { waitUntil } from '../../support/wait-until.ts'

const FAKE = fileURLToPath(new URL('../../support/engines/fake-comfyui/main.ts', import.meta.url))
const WEIGHTS = '/api/v2/weights'
const MIB = 1024 * 1024
const OPERATOR = { authorization: 'Bearer the-admin-token' }

/** A file with one tensor that fills it. */
function safetensors(dataBytes: number, header?: object | string): Buffer {
  const tensor = { dtype: 'U8', shape: [dataBytes], data_offsets: [0, dataBytes] }
  const json = Buffer.from(typeof header === 'string' ? header : JSON.stringify(header ?? { w: tensor }))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(json.length))
  return Buffer.concat([length, json, Buffer.alloc(dataBytes, 7)])
}

const sha256 = (bytes: Uint8Array) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`
const commandOf = (modelsDir: string) =>
  `'${process.execPath}' '${FAKE}' --port {port} --options '${JSON.stringify({ modelsDir })}'`

async function makeModels(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'atelier-models-'))
  for (const folder of ['checkpoints', 'loras', 'vae']) await mkdir(join(directory, folder))
  return directory
}

interface Target {
  readonly url: string
}

const begin = (app: Target, body: object) =>
  call(app.url, WEIGHTS, { method: 'POST', headers: OPERATOR, body: JSON.stringify(body) })
const send = (app: Target, id: string, offset: number, body: Uint8Array) =>
  call(app.url, `${WEIGHTS}/uploads/${id}`, {
    method: 'PATCH',
    headers: { ...OPERATOR, 'upload-offset': String(offset), 'content-type': 'application/offset+octet-stream' },
    body,
  })
const ask = (app: Target, path: string, method = 'GET') => call(app.url, path, { method, headers: OPERATOR })

async function put(app: Target, wish: { folder?: string; name: string; hash?: string }, bytes: Buffer) {
  const begun = await begin(app, { folder: 'checkpoints', size_bytes: bytes.length, ...wish })
  return begun.status === 201 ? send(app, begun.json.id, 0, bytes) : begun
}

describe('uploads of weights', () => {
  let models: string
  let app: TestApp
  let remote: Awaited<ReturnType<typeof startFakeComfy>>
  before(async () => {
    models = await makeModels()
    remote = await startFakeComfy({ checkpoints: ['there.safetensors'] })
    const settings = {
      ...{ comfyui: remote.url.href, comfyuiLaunch: commandOf(models), engineWait: '10m' },
      adminToken: 'the-admin-token',
    }
    app = await startTestApp({ settings })
  })
  after(async () => {
    await app[Symbol.asyncDispose]()
    await remote[Symbol.asyncDispose]()
    await rm(models, { recursive: true, force: true })
  })

  const leftOvers = () =>
    ['checkpoints', 'loras', 'vae'].flatMap((folder) => {
      const own = join(models, folder, '.atelier')
      return existsSync(own) ? readdirSync(own).filter((name) => name !== 'hashes.json') : []
    })

  test('a file comes in parts, appears whole with its hash, runs, and is not removed while it is loaded', async () => {
    const bytes = safetensors(10_000)
    const begun = await begin(app, {
      ...{ folder: 'checkpoints', name: 'sub/new.safetensors', size_bytes: bytes.length, hash: sha256(bytes) },
    })
    assert.equal(begun.status, 201, begun.text)
    assert.deepEqual([begun.json.engine, begun.json.offset_bytes, begun.json.status], ['launched-1', 0, 'open'])
    const { id } = begun.json
    assert.equal((await send(app, id, 0, bytes.subarray(0, 5))).json.offset_bytes, 5)
    const wrong = await send(app, id, 4, bytes.subarray(4))
    assert.deepEqual([wrong.status, wrong.json.error.details.offset_bytes], [409, 5])
    assert.equal((await send(app, id, 5, bytes.subarray(5, 9000))).json.offset_bytes, 9000)
    assert.equal(existsSync(join(models, 'checkpoints/sub/new.safetensors')), false, 'nothing is half there')
    assert.equal((await ask(app, `${WEIGHTS}/uploads`)).json.uploads[0].offset_bytes, 9000)
    const done = await send(app, id, 9000, bytes.subarray(9000))
    assert.deepEqual([done.status, done.json.status, done.json.hash], [200, 'complete', sha256(bytes)])
    assert.deepEqual(await readFile(join(models, 'checkpoints/sub/new.safetensors')), bytes)
    assert.equal((await ask(app, `${WEIGHTS}/uploads/${id}`)).status, 404)
    // At once, and so is what jobs may name.
    const found = await ask(app, `${WEIGHTS}?engine=launched-1&name=${encodeURIComponent('sub/new.safetensors')}`)
    const [listed] = found.json.weights
    assert.deepEqual([listed.size_bytes, listed.hash, listed.folder], [bytes.length, sha256(bytes), 'checkpoints'])

    const submit = await call(app.url, '/api/v2/jobs', {
      method: 'POST',
      body: JSON.stringify({ workflow: pictureGraph(1, 'sub/new.safetensors') }),
    })
    assert.equal(submit.status, 201, submit.text)
    await waitUntil(async () => (await ask(app, `/api/v2/jobs/${submit.json.id}`)).json.status === 'succeeded' || null)
    const query = 'engine=launched-1&folder=checkpoints&name=sub%2Fnew.safetensors'
    assert.equal((await ask(app, `${WEIGHTS}?${query}`, 'DELETE')).status, 409)
    assert.equal((await ask(app, `${WEIGHTS}?${query}&force=true`, 'DELETE')).status, 204)
    assert.equal((await ask(app, `${WEIGHTS}?${query}`, 'DELETE')).status, 404)
    assert.equal(existsSync(join(models, 'checkpoints/sub/new.safetensors')), false)
    assert.deepEqual((await ask(app, `${WEIGHTS}?engine=launched-1`)).json.weights, [])
    const { records } = (await ask(app, '/admin/v1/audit')).json
    const actions = records.map(({ action }: { action: string }) => action)
    assert.deepEqual(actions.slice(0, 3), ['weights.remove', 'weights.add', 'weights.upload'])
  })

  test('a link to a file that a builder keeps under its hash is listed with that hash', async () => {
    const bytes = safetensors(50)
    const hex = createHash('sha256').update(bytes).digest('hex')
    const kept = await mkdtemp(join(tmpdir(), 'atelier-kept-'))
    const link = join(models, 'vae', 'linked.safetensors')
    try {
      await mkdir(join(kept, hex.slice(0, 2)))
      await writeFile(join(kept, hex.slice(0, 2), hex), bytes)
      await symlink(join(kept, hex.slice(0, 2), hex), link)
      // Brings the list up to date.
      assert.equal((await put(app, { folder: 'vae', name: 'other.safetensors' }, safetensors(10))).status, 200)
      const { weights } = (await ask(app, `${WEIGHTS}?engine=launched-1&folder=vae&name=linked.safetensors`)).json
      assert.deepEqual([weights[0].size_bytes, weights[0].hash], [bytes.length, sha256(bytes)])
    } finally {
      await rm(link, { force: true })
      await rm(join(models, 'vae', 'other.safetensors'), { force: true })
      await rm(kept, { recursive: true, force: true })
    }
  })

  test('only an operator may: neither the requests of the service’s user nor a wrong token', async () => {
    const credentials: Record<string, string>[] = [{}, { authorization: 'Bearer wrong' }]
    for (const headers of credentials)
      for (const [method, path] of [
        ['POST', WEIGHTS],
        ['DELETE', `${WEIGHTS}?engine=launched-1&folder=vae&name=a.safetensors`],
        ['GET', `${WEIGHTS}/uploads`],
        ['PATCH', `${WEIGHTS}/uploads/00000000-0000-4000-8000-000000000000`],
      ])
        assert.equal((await call(app.url, path, { method, headers })).status, 401, `${method} ${path}`)
    assert.equal((await call(app.url, WEIGHTS)).status, 200, 'reading is everybody’s')
  })

  test('names that lead out, hide or are no weights are refused, and so are other folders and engines', async () => {
    const outside = await mkdtemp(join(tmpdir(), 'atelier-outside-'))
    await symlink(outside, join(models, 'loras', 'away'))
    await symlink(join(outside, 'nowhere'), join(models, 'loras', 'dangling'))
    const refused: [object, number][] = [
      ...['../a.safetensors', '/a.safetensors', 'a/../../b.safetensors', 'C:/a.safetensors', '..\\a.safetensors'].map(
        (name): [object, number] => [{ name }, 422],
      ),
      ...['.atelier/a.safetensors', 'a\u0000.safetensors', '.safetensors', 'a.txt', 'a.safetensors/', ''].map(
        (name): [object, number] => [{ name }, 422],
      ),
      ...['away/a.safetensors', 'dangling/a.safetensors'].map((name): [object, number] => [
        { folder: 'loras', name },
        422,
      ]),
      ...['../checkpoints', 'checkpoints/sub', 'custom_nodes', 'nothing'].map((folder): [object, number] => [
        { folder },
        422,
      ]),
      ...['a.ckpt', 'a.pt', 'a.PTH', 'a.bin', 'a.pkl'].map((name): [object, number] => [{ name }, 422]),
      [{ engine: remote.url.host }, 422],
      [{ engine: 'nobody' }, 404],
      [{ size_bytes: 0 }, 422],
      [{ size_bytes: 1.5 }, 422],
      [{ hash: 'md5:00' }, 422],
      [{ more: true }, 400],
      [{ size_bytes: 2 ** 50 }, 413],
    ]
    for (const [wish, status] of refused) {
      const answer = await begin(app, { folder: 'checkpoints', name: 'a.safetensors', size_bytes: 100, ...wish })
      assert.equal(answer.status, status, `${JSON.stringify(wish)}: ${answer.text}`)
    }
    const long = await begin(app, { folder: 'vae', name: `${'a'.repeat(300)}.safetensors`, size_bytes: 1 })
    assert.equal(long.status, 422)
    for (const name of ['../../x.safetensors', 'away/x.safetensors', '.atelier/hashes.json']) {
      const path = `${WEIGHTS}?engine=launched-1&folder=loras&name=${encodeURIComponent(name)}`
      assert.equal((await ask(app, path, 'DELETE')).status, 422, name)
    }
    assert.deepEqual(await readdir(outside), [])
    assert.deepEqual(leftOvers(), [])
    await rm(outside, { recursive: true })
  })

  test('bytes that are not what the name says are refused as soon as that is known, and nothing is kept', async () => {
    const data = { dtype: 'U8', shape: [10], data_offsets: [0, 10] }
    const wrong: Record<string, Buffer> = {
      'a pickle': Buffer.concat([Buffer.from('80027d7100', 'hex'), Buffer.alloc(200)]),
      'a zip': Buffer.concat([Buffer.from('PK\u0003\u0004'), Buffer.alloc(200)]),
      'a header beyond the file': Buffer.concat([Buffer.from([255, 1, 0, 0, 0, 0, 0, 0]), Buffer.from('{}')]),
      'a huge header': Buffer.concat([Buffer.from([0, 0, 0, 0, 0, 0, 0, 1]), Buffer.alloc(100)]),
      'no JSON': safetensors(10, '{"w": nonsense}'),
      'a tensor beyond the end': safetensors(10, { w: { ...data, data_offsets: [0, 11] } }),
      'bytes that belong to no tensor': safetensors(10, { w: { ...data, data_offsets: [0, 9] } }),
      'tensors that overlap': safetensors(10, { w: data, v: { ...data, data_offsets: [5, 10] } }),
      'too short': Buffer.from('abc'),
    }
    for (const [what, bytes] of Object.entries(wrong)) {
      const answer = await put(app, { name: 'wrong.safetensors' }, bytes)
      assert.equal(answer.status, 422, `${what}: ${answer.text}`)
    }
    const large = await begin(app, { folder: 'checkpoints', name: 'wrong.safetensors', size_bytes: 2 * MIB })
    assert.equal((await send(app, large.json.id, 0, Buffer.alloc(2 * MIB, 1))).status, 422, 'also while more is sent')
    assert.equal((await put(app, { name: 'wrong.gguf' }, Buffer.from('not a gguf'))).status, 422)
    const other = await put(app, { name: 'other.safetensors', hash: sha256(Buffer.from('x')) }, safetensors(10))
    assert.deepEqual([other.status, other.json.error.code], [409, 'hash_mismatch'])
    const begun = await begin(app, { folder: 'vae', name: 'more.safetensors', size_bytes: 50 })
    assert.equal((await send(app, begun.json.id, 0, safetensors(1000))).status, 413)
    assert.equal((await ask(app, `${WEIGHTS}/uploads/${begun.json.id}`, 'DELETE')).status, 204)
    assert.deepEqual(leftOvers(), [])
    assert.deepEqual(
      (await readdir(join(models, 'checkpoints'))).filter((name) => name.includes('wrong') || name.includes('other')),
      [],
    )
  })

  test('one name is uploaded once: neither twice at once nor over a file that is there', async () => {
    const bytes = safetensors(50)
    const wish = { folder: 'loras', name: 'same.safetensors', size_bytes: bytes.length }
    const both = await Promise.all([begin(app, wish), begin(app, wish)])
    assert.deepEqual(both.map(({ status }) => status).sort(), [201, 409])
    const [won, lost] = both[0]?.status === 201 ? both : [both[1], both[0]]
    assert.equal(lost?.json.error.details.upload_id, won?.json.id)
    await writeFile(join(models, 'loras', 'same.safetensors'), 'somebody was quicker')
    const late = await send(app, won?.json.id, 0, bytes)
    assert.equal(late.status, 409, late.text)
    assert.equal(await readFile(join(models, 'loras', 'same.safetensors'), 'utf8'), 'somebody was quicker')
    await rm(join(models, 'loras', 'same.safetensors'))
    const done = await send(app, won?.json.id, bytes.length, Buffer.alloc(0))
    assert.deepEqual([done.status, done.json.status], [200, 'complete'])
    assert.equal((await begin(app, wish)).status, 409, 'a file is never replaced')
  })

  test('the command line puts a file, goes on with what was broken off, and removes it', async () => {
    const bytes = safetensors(20_000)
    const cwd = await mkdtemp(join(tmpdir(), 'atelier-weights-'))
    await writeFile(join(cwd, 'mine.safetensors'), bytes)
    const env = { ATELIER_ADMIN_TOKEN: 'the-admin-token' }
    const weights = (...args: string[]) => runInProcess(['weights', ...args, '--base-url', app.url], { cwd, env })
    const added = await weights('add', 'mine.safetensors', '--folder', 'vae')
    assert.deepEqual([added.code, added.stdout], [0, 'launched-1: vae/mine.safetensors\n'], added.stderr)
    assert.match(added.stderr, /^0% mine\.safetensors\n100% mine\.safetensors\n$/)
    const again = await weights('add', 'mine.safetensors', '--folder', 'vae')
    assert.deepEqual([again.code, /a file of this name already/.test(again.stderr)], [1, true], again.stderr)

    const hash = `blake3:${(await openBlake3()).hash(bytes)}`
    const half = await begin(app, { folder: 'vae', name: 'a/half.safetensors', size_bytes: bytes.length, hash })
    await send(app, half.json.id, 0, bytes.subarray(0, 9000))
    const resumed = await weights('add', 'mine.safetensors', '--folder', 'vae', '--name', 'a/half.safetensors')
    assert.deepEqual([resumed.code, resumed.stdout], [0, 'launched-1: vae/a/half.safetensors\n'], resumed.stderr)
    assert.match(resumed.stderr, /^going on from byte 9000\n/)
    assert.deepEqual(await readFile(join(models, 'vae/a/half.safetensors')), bytes)

    const engine = ['--folder', 'vae', '--engine', 'launched-1']
    for (const name of ['mine.safetensors', 'a/half.safetensors'])
      assert.equal((await weights('remove', name, ...engine)).code, 0, name)
    assert.equal((await weights('remove', 'mine.safetensors', ...engine)).code, 1)
    assert.equal(existsSync(join(models, 'vae/mine.safetensors')), false)
    assert.equal((await weights('add', 'none.safetensors', '--folder', 'vae')).code, 2)
    assert.equal((await weights('add', 'mine.safetensors', '--folder', 'vae', '--admin-token', 'wrong')).code, 1)
    await rm(cwd, { recursive: true })
  })
})

test('a process that is killed in the middle of an upload goes on with it after its next start', async () => {
  const models = await makeModels()
  const dataDir = await mkdtemp(join(tmpdir(), 'atelier-killed-'))
  const flags = ['--data-dir', dataDir, '--comfyui-launch', commandOf(models), '--engine-wait', '10m']
  const bytes = safetensors(300_000)
  let server: SpawnedServer = await spawnServer(flags)
  try {
    const wish = { folder: 'checkpoints', name: 'kept.safetensors', size_bytes: bytes.length, hash: sha256(bytes) }
    const { id } = (await begin(server, wish)).json
    assert.equal((await send(server, id, 0, bytes.subarray(0, 100_000))).status, 200)
    await server.killNow()
    // What a write that was cut off may have left behind the bytes that are safe.
    await writeFile(join(models, 'checkpoints/.atelier', `${id}.part`), Buffer.alloc(5000, 1), { flag: 'a' })
    server = await spawnServer(flags)
    const { offset_bytes: offset } = (await ask(server, `${WEIGHTS}/uploads/${id}`)).json
    assert.equal(offset, 100_000)
    const done = await send(server, id, offset, bytes.subarray(offset))
    assert.deepEqual([done.status, done.json.status], [200, 'complete'], done.text)
    assert.deepEqual(await readFile(join(models, 'checkpoints/kept.safetensors')), bytes)
  } finally {
    await server.terminate()
    for (const path of [models, dataDir]) await rm(path, { recursive: true, force: true })
  }
})

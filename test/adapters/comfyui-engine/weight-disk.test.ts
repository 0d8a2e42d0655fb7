/** Uploads of weights on a real disk, with what can go wrong beneath them: broken connections, full disks, idle uploads, links. */
import assert from 'node:assert/strict'
import { link, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { newUuidV4 } from '../../../lib/ids.ts'
import { createWeightDisk } from '../../../src/adapters/engines/comfyui/weights/weight-disk.ts'
import type { EngineDirectory } from '../../../src/domain/engine/directory/engine-directory.ts'
import { createWeightManager } from '../../../src/domain/engine/weights/manage-weights.ts'
import type { WeightStore } from '../../../src/domain/engine/weights/weight-store.ts'
import { ServiceError } from '../../../src/domain/errors.ts'

const HOUR_MS = 3_600_000

let directory: string
let vae: string
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'atelier-weight-disk-'))
  vae = join(directory, 'vae')
  await mkdir(vae)
})
after(() => rm(directory, { recursive: true, force: true }))

function open({ nowMs = Date.now(), ...changed }: Partial<WeightStore> & { readonly nowMs?: number } = {}) {
  const paths = [join(directory, 'vae_old'), vae]
  const disk = createWeightDisk({ findFolders: async () => [{ name: 'vae', paths }], refresh: async () => {} })
  return createWeightManager({
    places: () => [{ engineId: 'ours', store: { ...disk, ...changed } }],
    directory: { find: () => assert.fail('it is ours'), status: () => [], weights: () => [] },
    rules: { allowsPickles: true },
    newId: newUuidV4,
    clock: { now: () => new Date(nowMs) },
  })
}

const wish = (name: string, sizeBytes = 20) => ({ engineId: null, folder: 'vae', name, sizeBytes, hash: null })

async function* breaking(bytes: Uint8Array, error: Error) {
  yield bytes
  throw error
}

async function* all(bytes: Uint8Array) {
  yield bytes
}

const isRefused = (refusal: string) => (error: unknown) => error instanceof ServiceError && error.refusal === refusal

test('what came before a connection broke, or the disk was full, is kept and gone on with', async () => {
  const weights = open()
  const { id } = await weights.begin(wish('a.pt'))
  const reset = Object.assign(new Error('reset'), { code: 'ECONNRESET' })
  await assert.rejects(weights.append(id, { offsetBytes: 0, source: breaking(Buffer.from('01234'), reset) }), reset)
  const full = Object.assign(new Error('no space'), { code: 'ENOSPC' })
  const half = weights.append(id, { offsetBytes: 5, source: breaking(Buffer.from('56789'), full) })
  await assert.rejects(half, isRefused('payload_too_large'))
  assert.equal((await open().find(id)).offsetBytes, 10, 'another process knows it, too')
  const done = await weights.append(id, { offsetBytes: 10, source: all(Buffer.from('abcdefghij')) })
  assert.equal(done.expiresAt, null)
  assert.equal(await readFile(join(vae, 'a.pt'), 'utf8'), '0123456789abcdefghij')
})

test('a file for which the disk has no room is refused before anything is sent', async () => {
  await assert.rejects(open({ freeBytes: async () => 1000 }).begin(wish('b.pt')), isRefused('payload_too_large'))
})

test('an upload has one sender at a time, and cannot be given up under it', async () => {
  const weights = open()
  const { id } = await weights.begin(wish('c.pt'))
  const begun = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  async function* slow() {
    begun.resolve()
    await goOn.promise
    yield Buffer.alloc(20)
  }
  const first = weights.append(id, { offsetBytes: 0, source: slow() })
  await begun.promise
  await assert.rejects(
    weights.append(id, { offsetBytes: 0, source: all(Buffer.alloc(20)) }),
    isRefused('weights_conflict'),
  )
  await assert.rejects(weights.abandon(id), isRefused('weights_conflict'))
  goOn.resolve()
  assert.equal((await first).expiresAt, null)
})

test('an upload that nothing was sent to for a day makes way for the next', async () => {
  const { id } = await open().begin(wish('d.pt'))
  await assert.rejects(open({ nowMs: Date.now() + 23 * HOUR_MS }).begin(wish('d.pt')), isRefused('weights_conflict'))
  const later = await open({ nowMs: Date.now() + 25 * HOUR_MS }).begin(wish('d.pt'))
  assert.notEqual(later.id, id)
  assert.deepEqual(
    (await open().list()).map((upload) => upload.id),
    [later.id],
  )
  await open().abandon(later.id)
})

test('a process that was killed after the file had got its name finds it done', async () => {
  const weights = open({ publish: async () => 'taken' })
  const { id } = await weights.begin(wish('e.pt'))
  await assert.rejects(
    weights.append(id, { offsetBytes: 0, source: all(Buffer.alloc(20, 1)) }),
    isRefused('weights_conflict'),
  )
  await link(join(vae, '.atelier', `${id}.part`), join(vae, 'e.pt'))
  assert.equal((await open().append(id, { offsetBytes: 20, source: all(Buffer.alloc(0)) })).expiresAt, null)
  assert.deepEqual(await open().list(), [])
})

test('links that were put in the way are not followed', async () => {
  const { id } = await open().begin(wish('f.pt'))
  const victim = join(directory, 'victim')
  await writeFile(victim, 'untouched')
  const part = join(vae, '.atelier', `${id}.part`)
  await rm(part)
  await symlink(victim, part)
  await assert.rejects(open().append(id, { offsetBytes: 0, source: all(Buffer.alloc(20, 1)) }))
  assert.equal(await readFile(victim, 'utf8'), 'untouched')
  await open().abandon(id)
  await symlink(victim, join(vae, 'g.pt'))
  await open().remove('ours', { folder: 'vae', name: 'g.pt' }, { isForced: false })
  assert.equal(await readFile(victim, 'utf8'), 'untouched', 'of a link, the link alone is removed')
  assert.deepEqual((await readdir(vae)).toSorted(), ['.atelier', 'a.pt', 'c.pt', 'e.pt'])
})

test('what must reach another process is refused with its id, its machine and its address', async () => {
  const engine = (id: string, isSupervised: boolean, drivenBy: string) =>
    ({ id, isSupervised, drivenBy }) as ReturnType<EngineDirectory['find']>
  const engines = [engine('remote', false, 'n1'), engine('launched', true, 'n1'), engine('worked', true, 'n2')]
  const about = { version: '1', workers: {} }
  const nodes = [
    { id: 'n1', about: { ...about, role: 'all' as const, host: 'gpu-1', url: 'http://10.0.0.1:8189' } },
    { id: 'n2', about: { ...about, role: 'worker' as const, host: 'gpu-2' } },
  ]
  const weights = createWeightManager({
    places: () => [],
    directory: {
      find: (id) => engines.find((each) => each.id === id) ?? assert.fail('it is known'),
      status: () => engines,
      weights: () => [],
    },
    findNodes: async () => nodes,
    rules: { allowsPickles: true },
    newId: newUuidV4,
    clock: { now: () => new Date() },
  })
  const path = { folder: 'vae', name: 'a.safetensors' }
  const where = { driven_by: 'n1', host: 'gpu-1', url: 'http://10.0.0.1:8189' }
  const refusals = [
    [
      () => weights.begin(wish('a.safetensors')),
      'not_found',
      /launched was launched by process n1 on gpu-1; send.*10\.0\.0\.1/,
    ],
    [() => weights.remove('launched', path, { isForced: false }), 'invalid_field', /process n1 on gpu-1/],
    [
      () => weights.remove('worked', path, { isForced: false }),
      'invalid_field',
      /gpu-2, a worker that takes no requests; put/,
    ],
    [() => weights.remove('remote', path, { isForced: false }), 'invalid_field', /by hand/],
    [() => weights.find('x'), 'not_found', /in this process/],
  ] as const
  for (const [act, refusal, message] of refusals) {
    await assert.rejects(act, (error) => {
      assert.ok(error instanceof ServiceError)
      assert.equal(error.refusal, refusal)
      assert.match(error.message, message)
      if (/gpu-1/.test(error.message))
        assert.deepEqual({ ...error.details, engine: 0, field: 0 }, { ...where, engine: 0, field: 0 })
      return true
    })
  }
})

/** Releases on machines that joined over HTTP: they make what they are told from its lock, serve it, move, and are taken over from. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, realpath, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { joinTestWorker } from '../../support/app/join-worker.ts'
import { spawnServer } from '../../support/app/spawn-server.ts'
import { startTestApp } from '../../support/app/start-app.ts'
import { withoutUv } from '../../support/builds/bench.ts'
import { packFiles, zipOf } from '../../support/builds/packages.ts'
import { writeRunning } from '../../support/builds/running-comfyui.ts'
import { runInProcess } from '../../support/cli/in-process.ts'
import { call } from '../../support/clients/call.ts'
import { ADMIN_TOKEN, isAlive, largeModel, openStudio, TARGET } from '../../support/deployments/storm.ts'
import { waitUntil } from '../../support/wait-until.ts'

test('a machine that joined makes releases from their locks, serves, moves and rolls back; another takes over when its key is revoked', {
  skip: withoutUv,
}, async () => {
  await using opening = new AsyncDisposableStack()
  const root = await realpath(await mkdtemp(path.join(tmpdir(), 'joined-')))
  opening.defer(() => rm(root, { recursive: true, force: true, maxRetries: 5 }))
  const running = await writeRunning(root, { target: TARGET, uv: null })
  const builders = JSON.parse(readFileSync(running.builderFile, 'utf8')) as object
  // It makes the first folder of each release, and starts no engine.
  const app = opening.use(
    await startTestApp({
      settings: {
        ...{ kind: 'cloud', adminToken: ADMIN_TOKEN, joins: 'on', builds: 'ana' },
        ...{ builder: running.builderFile, releaseEngines: '0' },
      },
      overrides: { engines: [] },
    }),
  )
  const admin = (at: string, body: object) =>
    call(app.url, `/admin/v1${at}`, {
      ...{ method: 'POST', body: JSON.stringify(body), headers: { authorization: `Bearer ${ADMIN_TOKEN}` } },
    })
  const newKey = async (rights: object = { builds: true }) =>
    (await admin('/workers/keys', rights)).json as { id: string; text: string }
  async function writeBuilder(name: string, targets: readonly string[] = ['linux/cpu']): Promise<string> {
    const file = path.join(root, `${name}.json`)
    await writeFile(file, JSON.stringify({ ...builders, targets, folder: path.join(root, name) }))
    return file
  }
  const toFlags = (builder: string) =>
    ['--join', app.url, '--builds', 'on', '--builder', builder, '--release-engines', '2', '--embedded', 'off'] as const
  const enginesOf = async (): Promise<readonly { id: string; state: string }[]> => {
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` }
    return (await call(app.url, '/admin/v1/engines', { headers })).json.engines
  }
  const folderOf = (name: string, releaseId: string) =>
    path.join(root, name, 'releases', releaseId, 'linux-cpu', 'release.json')

  const studio = await openStudio({ ask: (at, options) => call(app.url, at, options) })
  const { api, versions } = studio
  const first = await studio.cut({})
  const firstKey = await newKey()
  const flags = toFlags(await writeBuilder('one'))
  const plain = (await newKey({})).text
  const refused = await runInProcess(['work', ...flags, '--token', plain], { cwd: root })
  assert.equal(refused.code, 2, refused.stderr)
  assert.match(refused.stderr, /may make and serve no releases; make one with: atelier workers create --builds/)
  const env = { ATELIER_WORKER_TOKEN: firstKey.text, HOME: root }
  const one = opening.use(await spawnServer([...flags, '--log-level', 'warn'], env, { command: 'work' }))
  const made = await api('POST', '/deploy/v1/deployments', {
    ...{ releaseId: first, computeConfig: { gpuClass: 'cpu', region: 'local', min: 1, max: 1 } },
  })
  assert.equal(made.status, 201, made.text)
  const at = `/deploy/v1/deployments/${made.json.id}`
  const record = async () => (await api('GET', at)).json
  const until = (
    isSo: (told: { status: string; revision: number; pendingUpdate: { status: string } | null }) => boolean,
  ) =>
    waitUntil(async () => {
      const told = await record()
      assert.notEqual(told.status, 'failed', JSON.stringify(told))
      return isSo(told) ? told : null
    })
  let sent = 0
  /** A job that runs to its end, and the engine that it ran on. */
  async function run(): Promise<number> {
    const text = `job-${sent++}-end`
    const workflow = { '1': { class_type: 'DemoStamp', inputs: { filename_prefix: text } } }
    const answer = await api('POST', `/deployment/${made.json.id}/api/v2/jobs`, { workflow })
    assert.equal(answer.status, 201, answer.text)
    const end = await waitUntil(async () => {
      const { json } = await api('GET', `/api/v2/jobs/${answer.json.id}`)
      return ['succeeded', 'failed'].includes(json.status as string) ? json : null
    })
    assert.equal(end.status, 'succeeded', JSON.stringify(end.error))
    const ranOn = [...versions]
      .filter(([release]) => running.logOf(release).includes(text))
      .map(([, version]) => version)
    assert.deepEqual(ranOn, [answer.json.release_version])
    return answer.json.release_version as number
  }

  await until(({ status }) => status === 'ready')
  assert.ok(existsSync(folderOf('one', first)), 'it was made on the machine that joined')
  assert.equal(await run(), 1)
  assert.ok((await enginesOf()).some(({ id }) => id.startsWith(`${made.json.id}.1.v1/`) && id.endsWith(firstKey.id)))

  // With a model that only the service has.
  const bytes = largeModel(100_000)
  const models = [
    { type: 'checkpoints', filename: 'm.safetensors', blobId: await studio.upload('model', 'm.safetensors', bytes) },
  ]
  const second = await studio.release({ models })
  versions.set(second.id, second.version)
  assert.equal((await api('PATCH', at, { baseRevision: 1, releaseId: second.id })).status, 202)
  await until(({ revision }) => revision === 2)
  assert.equal(await run(), 2)
  assert.equal((await api('POST', `${at}/rollback`, { baseRevision: 2 })).status, 202)
  await until(({ revision }) => revision === 3)
  assert.equal(await run(), 1)
  // What it had of the other releases has ended.
  await waitUntil(() => running.pidsOf(second.id).every((pid) => !isAlive(pid)))

  // A release that the machine cannot make: the update fails and says why, and the one that serves goes on.
  const unmade = await studio.release({ models: [], customNodes: [] })
  assert.equal(unmade.deployable, true, JSON.stringify(unmade.artifacts))
  const comfyui = path.join(root, 'comfyui')
  // Whichever of the two builders has made it, it is not there now.
  await rm(path.join(root, 'one', 'releases', unmade.id), { recursive: true, force: true })
  await rename(comfyui, `${comfyui}-away`)
  assert.equal((await api('PATCH', at, { baseRevision: 3, releaseId: unmade.id })).status, 202)
  const failed = await until(({ pendingUpdate }) => pendingUpdate?.status === 'failed')
  assert.match(JSON.stringify(failed.pendingUpdate), /holds no main\.py/)
  assert.equal(await run(), 1)
  await rename(`${comfyui}-away`, comfyui)

  const settings = {
    builder: await writeBuilder('two', ['linux/nvidia', 'linux/cpu']),
    releaseEngines: '2',
    embedded: 'off',
  }
  const key = (await newKey()).text
  const two = opening.use(await joinTestWorker(app, { key, settings, builds: true, overrides: { engines: [] } }))
  const revoked = await admin(`/workers/keys/${firstKey.id}/revoke`, {})
  assert.equal(revoked.status, 200, revoked.text)
  assert.equal(await one.exited, 2, one.output())
  await waitUntil(() =>
    two.fleet.status().some(({ id, state }) => id.startsWith(`${made.json.id}.3.`) && state === 'ready'),
  )
  assert.equal(await run(), 1)
  assert.ok(existsSync(folderOf('two', first)), 'the other machine has made it')

  // What no process of the service can make is made by the machine that can, with its files, and served there.
  const blobId = await studio.upload('model', 'm.safetensors', bytes)
  const definition = {
    ...{ baseComfyVersion: 'v0.3.40', models: [{ type: 'checkpoints', filename: 'm.safetensors', blobId }] },
    customNodes: [
      { name: 'faraway', blobId: await studio.upload('node_zip', 'faraway.zip', zipOf(packFiles('Faraway'))) },
    ],
  }
  const { json: build } = await api('POST', '/builder/v1/builds', { name: 'faraway', definition })
  const cut = await api('POST', `/builder/v1/builds/${build.id}/releases`, {
    targets: [{ os: 'linux', gpu: 'nvidia' }],
  })
  assert.equal(cut.status, 201, cut.text)
  const faraway = await waitUntil(async () => {
    const { json } = await api('GET', `/builder/v1/releases/${cut.json.releaseId}`)
    return json.status === 'complete' ? json : null
  })
  const [artifact] = faraway.artifacts
  assert.equal(artifact.status, 'ready', JSON.stringify(artifact))
  const told = await api('GET', `/builder/v1/releases/${faraway.id}/logs?os=linux&gpu=nvidia`)
  assert.match(told.text, /== validate/)
  const there = await api('POST', '/deploy/v1/deployments', {
    ...{ releaseId: faraway.id, computeConfig: { gpuClass: 'nvidia', region: 'local', min: 1, max: 1 } },
  })
  assert.equal(there.status, 201, there.text)
  await waitUntil(async () => (await api('GET', `/deploy/v1/deployments/${there.json.id}`)).json.status === 'ready')
  await waitUntil(async () =>
    (await enginesOf()).some(({ id, state }) => id.startsWith(`${there.json.id}.1.v1/`) && state === 'ready'),
  )

  // A build that it cannot make fails with the reason.
  const broken = {
    baseComfyVersion: 'v0.3.40',
    customNodes: [
      {
        name: 'broken',
        blobId: await studio.upload(
          'node_zip',
          'broken.zip',
          zipOf(packFiles('Broken', { imports: ['nowhere_to_be_found'] })),
        ),
      },
    ],
  }
  const { json: brokenBuild } = await api('POST', '/builder/v1/builds', { name: 'broken', definition: broken })
  const brokenCut = await api('POST', `/builder/v1/builds/${brokenBuild.id}/releases`, {
    targets: [{ os: 'linux', gpu: 'nvidia' }],
  })
  const unbuilt = await waitUntil(async () => {
    const { json } = await api('GET', `/builder/v1/releases/${brokenCut.json.releaseId}`)
    return json.status === 'complete' ? json : null
  })
  assert.match(unbuilt.artifacts[0].failureReason, /^validate: pack broken: its import failed/)
})

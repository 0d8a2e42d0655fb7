/** A machine that joined and offers room for engines of releases, by hand: it is told what to serve, and may do that and nothing else. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { BUILT } from '../../contracts/environments/build-rig.ts'
import { startShared, type Tenant } from '../../support/app/start-shared.ts'
import { WorkerClient } from '../../support/clients/worker-client.ts'
import { type Deployed, deploy, type ReleasedApp, startReleased } from '../../support/deployments/released-app.ts'
import { waitUntil } from '../../support/wait-until.ts'

const NOTHING_YET = { place: 'coming', reason: null, up: 0, ready: 0, busy: 0, failure: null }
const SERVES = { place: 'here', reason: null, up: 1, ready: 1, busy: 0, failure: null }
const WORKFLOW = { '1': { class_type: 'FakeSave', inputs: { text: 'x' } } }

let started: ReleasedApp
let machine: WorkerClient
let stranger: WorkerClient
let deployed: Deployed

async function keyFor(
  body: object,
  { app }: Pick<ReleasedApp, 'app'> = started,
): Promise<WorkerClient & { readonly id: string }> {
  const made = await app.admin('POST', '/workers/keys', body)
  assert.equal(made.status, 201, made.text)
  return Object.assign(new WorkerClient(app.url, made.json.text), { id: made.json.id as string })
}

/** A release that waits for a builder. */
async function cut(tenant: Tenant, target: object, definition: object) {
  const post = async (at: string, body: object) => {
    const answer = await tenant.call(at, { method: 'POST', body: JSON.stringify(body) })
    assert.ok(answer.status < 300, answer.text)
    return answer.json
  }
  const build = await post('/builder/v1/builds', { name: 'studio', definition })
  const { releaseId } = await post(`/builder/v1/builds/${build.id}/releases`, { targets: [target] })
  const artifact = async () => (await tenant.call(`/builder/v1/releases/${releaseId}`)).json.artifacts[0]
  return { releaseId, artifact }
}

/** Room counts from the look after the first beat on. */
const isWanted = ({ engines }: { engines: number }) => engines > 0

/** Says what it has, and resolves with what it is to have. */
async function beat(by: WorkerClient, copies: readonly object[] = [], fields: object = {}) {
  const offer = { targets: ['linux/cpu'], cuda: null, room: 2, free_bytes: 1_000_000, copies, ...fields }
  return by.ask('POST', '/beats', { version: '1', host: 'gpu', live_node: null, workers: {}, machine: offer })
}

describe('a machine that joined', () => {
  before(async () => {
    // The service itself starts engines of no class.
    started = await startReleased({ joins: 'on', builds: 'cut,cut-too' }, [])
    machine = await keyFor({ builds: true })
    stranger = await keyFor({ builds: true })
  })
  after(async () => started[Symbol.asyncDispose]())

  test('offers itself only under a key that was made for it, and says what it is in known words', async () => {
    const plain = await keyFor({})
    const refused = await beat(plain)
    assert.deepEqual([refused.status, refused.json.error.type], [403, 'forbidden'])
    assert.match(refused.json.error.message, /--builds/)
    const wrong = await beat(machine, [], { targets: ['plan9/abacus'] })
    assert.equal(wrong.status, 422, wrong.text)
    assert.deepEqual((await beat(machine)).json.copies, [])
    const { keys } = (await started.app.admin('GET', '/workers/keys')).json
    assert.deepEqual(keys.map(({ builds }: { builds: boolean }) => builds).toSorted(), [false, true, true])
  })

  test('is told what to serve, and its engines take the jobs of that copy', async () => {
    const tenant = await started.app.account('ana')
    const release = started.releases.add({ version: 5, accountId: 'ana' })
    deployed = await deploy(tenant, release.id)
    const copy = await waitUntil(async () => (await beat(machine)).json.copies.find(isWanted))
    const pool = `${deployed.id}.1.v5`
    assert.deepEqual(copy, { pool, release_id: release.id, gpu_class: 'cpu', engines: 1 })

    const staging = { models_done: 1, models_total: 3, bytes_done: 10, bytes_total: null, current_model: 'm.sft' }
    await beat(machine, [{ pool, ...NOTHING_YET, staging }])
    const { progress } = await deployed.until(({ progress }) => progress?.modelsDone !== undefined)
    assert.deepEqual(
      [progress.step, progress.modelsDone, progress.modelsTotal, progress.bytesDone, progress.currentModel],
      ['staging_models', 1, 3, 10, 'm.sft'],
    )
    assert.equal((await machine.publish(`${pool}/1`)).json.held.length, 1)
    await beat(machine, [{ pool, ...SERVES }])
    await deployed.until(({ status }) => status === 'ready')
    const sent = await deployed.submit(WORKFLOW)
    assert.equal(sent.status, 201, sent.text)

    const engines = [{ name: `${pool}/1`, loaded_weights: [], broke_latest_run: false }]
    for (const by of [stranger, await keyFor({})]) assert.equal((await by.claim({ pool, engines })).status, 403)
    assert.equal((await machine.claim({ pool: 'dep-000000000000.1.v1', engines })).status, 403)
    const leaseId = randomUUID()
    const claimed = await machine.claim({ pool, engines, lease_id: leaseId, wait_ms: 10_000 })
    assert.equal(claimed.status, 200, claimed.text)
    assert.equal(claimed.json.job.id, sent.json.id)
    assert.equal((await machine.finish({ jobId: sent.json.id, leaseId })).status, 200)
    assert.equal((await tenant.call(`/api/v2/jobs/${sent.json.id}`)).json.status, 'succeeded')
  })

  test('offers no engine for a copy of another machine', async () => {
    const pool = `${deployed.id}.1.v5`
    const answer = await stranger.publish(`${pool}/1`)
    assert.deepEqual([answer.status, answer.json.held], [200, []])
  })

  test('reads no release that it is not told to serve', async () => {
    await beat(stranger)
    const [copy] = (await beat(machine)).json.copies
    for (const id of [copy.release_id, 'rel-none']) {
      const answer = await stranger.ask('GET', `/releases/${id}?target=linux/cpu`)
      assert.deepEqual([answer.status, answer.json.error.type], [404, 'not_found'])
      assert.equal(answer.json.error.message, 'this machine is to serve no such release')
      assert.equal((await stranger.ask('GET', `/releases/${id}/blobs/blob-1`)).status, 404)
    }
  })

  test('builds under its own lease alone, and a key without the right builds nothing', async () => {
    const tenant = await started.app.account('cut')
    const definition = { baseComfyVersion: 'v0.3.40' }
    const { releaseId, artifact } = await cut(tenant, { os: 'linux', gpu: 'amd' }, definition)
    const plain = await keyFor({})
    const wanted = { lease_id: randomUUID(), targets: ['linux/amd'] }
    assert.equal((await plain.ask('POST', '/builds/claims', wanted)).status, 403)
    const others = { ...wanted, targets: ['linux/nvidia'] }
    assert.equal((await machine.ask('POST', '/builds/claims', others)).status, 204)
    const claimed = await machine.ask('POST', '/builds/claims', wanted)
    assert.equal(claimed.status, 200, claimed.text)
    assert.deepEqual(
      [claimed.json.release_id, claimed.json.target, claimed.json.definition, claimed.json.lock],
      [releaseId, 'linux/amd', definition, null],
    )
    assert.equal((await artifact()).status, 'building')
    const at = `/builds/${claimed.json.artifact_id}/moves`
    const move = { lease_id: wanted.lease_id, move: 'fail', text: 'start: no Python 3.12 is here; install one' }
    assert.equal((await plain.ask('POST', at, move)).status, 403)
    assert.deepEqual((await stranger.ask('POST', at, move)).json, { held: false })
    const empty = await machine.ask('POST', at, { ...move, text: undefined })
    assert.deepEqual([empty.status, empty.json.error.type], [422, 'invalid_field'])
    const logged = { ...move, move: 'log', text: 'looking around\n' }
    assert.deepEqual((await machine.ask('POST', at, logged)).json, { held: true })
    assert.deepEqual((await machine.ask('POST', at, { ...move, move: 'renew' })).json, { held: true })
    assert.deepEqual((await machine.ask('POST', at, move)).json, { held: true })
    assert.equal((await artifact()).failureReason, 'start: no Python 3.12 is here; install one')
    const log = await tenant.call(`/builder/v1/releases/${releaseId}/logs?os=linux&gpu=amd`)
    assert.equal(log.json.log, 'looking around\n')
    assert.deepEqual((await machine.ask('POST', at, move)).json, { held: false })
  })

  test('passes on what it cannot make to a builder that is there, and it fails where there is none', async () => {
    const tenant = await started.app.account('cut-too')
    const { artifact } = await cut(tenant, { os: 'linux', gpu: 'amd' }, { baseComfyVersion: 'v0.3.41' })
    const take = async (by: WorkerClient) => {
      const wanted = { lease_id: randomUUID(), targets: ['linux/amd'] }
      const claimed = await by.ask('POST', '/builds/claims', wanted)
      assert.equal(claimed.status, 200, claimed.text)
      const move = { lease_id: wanted.lease_id, move: 'pass_on', text: 'start: the disk of the builder is full' }
      return by.ask('POST', `/builds/${claimed.json.artifact_id}/moves`, move)
    }
    const image = { id: 'rocm-py312', label: 'ROCm', python: '3.12', torch: 'rocm6', is_default: true }
    await beat(stranger, [], { base_images: [{ ...image, targets: ['linux/amd'] }] })
    assert.deepEqual((await take(machine)).json, { held: true, passed_on: true })
    assert.equal((await artifact()).status, 'queued')
    assert.deepEqual((await take(stranger)).json, { held: true })
    const { status, failureReason } = await artifact()
    assert.deepEqual([status, failureReason], ['failed', 'start: the disk of the builder is full'])
  })

  test('whose key is revoked is not counted any more: another machine gets what it had', async () => {
    const { keys } = (await started.app.admin('GET', '/workers/keys')).json
    const own = keys.find(({ id }: { id: string }) => machine.key.includes(id))
    await started.app.admin('POST', `/workers/keys/${own.id}/revoke`)
    assert.equal((await beat(machine)).status, 401)
    const [copy] = await waitUntil(async () => {
      const { copies } = (await beat(stranger)).json
      return copies.length > 0 ? copies : null
    })
    assert.equal(copy.pool, `${deployed.id}.1.v5`)
  })

  test('that cannot make a release says why, and the deployment fails with that when no other can', async () => {
    const tenant = await started.app.account('ben')
    const release = started.releases.add({ version: 1, accountId: 'ben' })
    const broken = await deploy(tenant, release.id)
    const pool = `${broken.id}.1.v1`
    const reason = 'uv is not here and could not be installed'
    await waitUntil(async () => (await beat(stranger)).json.copies.some((copy: { pool: string }) => copy.pool === pool))
    await beat(stranger, [{ pool, ...NOTHING_YET, place: 'gone', reason }])
    const failed = await broken.until(({ status }) => status === 'failed')
    assert.equal(failed.error, `start: ${reason}`)
    const { events } = (await broken.call('GET', '/events')).json
    assert.match(JSON.stringify(events), /"start: uv is not here/)
  })
})

test('what a machine was building when it was lost waits for another one, also where the service itself builds nothing', async () => {
  let aheadMs = 0
  const clock = { now: () => new Date(Date.now() + aheadMs) }
  await using own = await startReleased({ joins: 'on', builds: 'cut' }, [], { clock })
  const { artifact } = await cut(await own.app.account('cut'), { os: 'linux', gpu: 'amd' }, { baseComfyVersion: 'v1' })
  const [lost, other] = [await keyFor({ builds: true }, own), await keyFor({ builds: true }, own)]
  const wanted = { lease_id: randomUUID(), targets: ['linux/amd'] }
  const claimed = await lost.ask('POST', '/builds/claims', wanted)
  assert.equal(claimed.status, 200, claimed.text)
  assert.equal((await other.ask('POST', '/builds/claims', wanted)).status, 204)
  aheadMs += 61_000
  await waitUntil(async () => (await artifact()).status === 'queued')
  assert.equal((await other.ask('POST', '/builds/claims', wanted)).json.artifact_id, claimed.json.artifact_id)
  const move = { lease_id: wanted.lease_id, move: 'renew' }
  assert.deepEqual((await lost.ask('POST', `/builds/${claimed.json.artifact_id}/moves`, move)).json, { held: false })
})

test('a service that is one process and builds nothing itself deploys what machines that joined make and serve', async () => {
  await using app = await startShared({ joins: 'on', builds: 'ana' })
  const ana = await app.account('ana')
  const { releaseId, artifact } = await cut(ana, { os: 'linux', gpu: 'cpu' }, { baseComfyVersion: 'v1' })
  const by = await keyFor({ builds: true }, { app })
  const leaseId = randomUUID()
  const { json } = await by.ask('POST', '/builds/claims', { lease_id: leaseId, targets: ['linux/cpu'] })
  const { lock, archiveSha256, sizeBytes, classes } = BUILT
  const built = { archive_sha256: archiveSha256, size_bytes: sizeBytes, classes }
  const move = { lease_id: leaseId, move: 'succeed', lock, built }
  const made = await by.ask('POST', `/builds/${json.artifact_id}/moves`, move)
  assert.deepEqual(made.json, { held: true }, made.text)
  assert.equal((await artifact()).status, 'ready')

  const send = () =>
    ana.call('/deploy/v1/deployments', {
      method: 'POST',
      body: JSON.stringify({ releaseId, computeConfig: { gpuClass: 'cpu', region: 'local', min: 1, max: 1 } }),
    })
  // Nobody is there who could serve it.
  assert.ok((await send()).status >= 400)
  await beat(by)
  const deployment = await deploy(ana, releaseId)
  const copy = await waitUntil(async () => (await beat(by)).json.copies.find(isWanted))
  assert.equal(copy.release_id, releaseId)
  const { pool } = copy
  await beat(by, [{ pool, ...NOTHING_YET }])
  await deployment.until(({ status }) => status === 'provisioning')
  assert.equal((await by.publish(`${pool}/1`)).json.held.length, 1)
  await beat(by, [{ pool, ...SERVES }])
  await deployment.until(({ status }) => status === 'ready')
  assert.equal((await deployment.submit(WORKFLOW)).status, 201)
})

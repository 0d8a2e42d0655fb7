/** From a build to a deployment: what a builder has made is deployed, and stays as long as a deployment may need it. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { startShared } from '../../support/app/start-shared.ts'
import { withoutUv } from '../../support/builds/bench.ts'
import { serveFolder } from '../../support/builds/file-server.ts'
import { comfyuiFiles, tinyModel, writeFolder } from '../../support/builds/packages.ts'
import { waitUntil } from '../../support/wait-until.ts'

test('a release that was built here is deployed, and neither it nor its build goes while a deployment refers to it', {
  skip: withoutUv,
}, async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'atelier-built-'))
  try {
    const comfyui = await writeFolder(path.join(folder, 'comfyui'), comfyuiFiles())
    const wheels = await writeFolder(path.join(folder, 'wheels'), { README: '' })
    const served = await writeFolder(path.join(folder, 'served'), { README: '' })
    await writeFile(path.join(served, 'a.safetensors'), tinyModel('of the house'))
    await using house = await serveFolder(served)
    const builder = {
      folder: path.join(folder, 'builder'),
      comfyui,
      wheels: [wheels],
      registry: 'none',
      targets: ['linux/cpu', 'linux/nvidia'],
      spare: '1MiB',
      origins: [house.origin],
    }
    const file = path.join(folder, 'builder.json')
    await writeFile(file, JSON.stringify(builder))
    await using app = await startShared({ builder: file, builds: 'ana' })
    const ana = await app.account('ana')
    const post = async (at: string, body: object) => {
      const answer = await ana.call(at, { method: 'POST', body: JSON.stringify(body) })
      assert.ok(answer.status < 300, answer.text)
      return answer.json
    }
    const remove = (at: string) => ana.call(at, { method: 'DELETE' })

    const definitionWith = (sourceUri: string) => ({
      ...{ baseComfyVersion: 'v0.3.40', models: [{ type: 'loras', filename: 'a.safetensors', sourceUri }] },
    })
    const unlisted = { name: 'unlisted', definition: definitionWith('http://127.0.0.2/a.safetensors') }
    const faulty = await ana.call('/builder/v1/builds', { method: 'POST', body: JSON.stringify(unlisted) })
    assert.deepEqual([faulty.status, faulty.json.error], [400, 'INVALID_DEFINITION'])
    // A host that the operator lists may be plain http, in a private network.
    const definition = definitionWith(`${house.origin}/a.safetensors`)
    const build = await post('/builder/v1/builds', { name: 'studio', definition })
    assert.deepEqual(build.warnings ?? [], [])
    const targets = [{ os: 'linux', gpu: 'cpu' }]
    const { releaseId } = await post(`/builder/v1/builds/${build.id}/releases`, { targets })
    const release = async () => (await ana.call(`/builder/v1/releases/${releaseId}`)).json
    await waitUntil(async () => (await release()).status === 'complete')
    const built = await release()
    assert.equal(built.deployable, true, JSON.stringify(built.artifacts))

    const stranger = await app.account('ben')
    const asked = { releaseId, computeConfig: { gpuClass: 'cpu', region: 'local', min: 0, max: 1 } }
    const refused = await stranger.call('/deploy/v1/deployments', { method: 'POST', body: JSON.stringify(asked) })
    assert.deepEqual([refused.status, refused.json.error], [403, 'FEATURE_NOT_ENABLED'])
    const elsewhere = { ...asked, computeConfig: { ...asked.computeConfig, gpuClass: 'nvidia' } }
    const unfit = await ana.call('/deploy/v1/deployments', { method: 'POST', body: JSON.stringify(elsewhere) })
    assert.equal(unfit.status, 400, unfit.text)
    assert.match(
      unfit.json.message,
      /cannot be used for a deployment: it is built for linux\/cpu, and class nvidia needs/,
    )
    const deployment = await post('/deploy/v1/deployments', asked)
    const record = (await ana.call(`/deploy/v1/deployments/${deployment.id}`)).json
    assert.deepEqual([record.releaseId, record.revision], [releaseId, 1])

    const inUse = await remove(`/builder/v1/releases/${releaseId}`)
    assert.deepEqual([inUse.status, inUse.json.error], [409, 'RELEASE_IN_USE'])
    assert.match(inUse.json.message, new RegExp(`${record.name}.*${deployment.id}`))
    assert.equal((await remove(`/builder/v1/builds/${build.id}`)).json.error, 'BUILD_IN_USE')

    assert.ok((await remove(`/deploy/v1/deployments/${deployment.id}`)).status < 300)
    assert.equal((await remove(`/builder/v1/releases/${releaseId}`)).status, 204)
    assert.equal((await remove(`/builder/v1/builds/${build.id}`)).status, 204)
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
})

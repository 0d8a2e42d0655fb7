/** Builds, uploads and releases as the official command line asks for them. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { startTestApp } from '../../../../test/support/app/start-app.ts'
import { ADMIN_TOKEN, type SharedApp, startShared, type Tenant } from '../../../../test/support/app/start-shared.ts'
import { call } from '../../../../test/support/clients/call.ts'
import { openSpecChecks } from '../../../../test/support/clients/check-against-spec.ts'

const { checkAgainstSchema } = openSpecChecks('builder-v1.openapi.json')
const BUILDER = '/builder/v1'
const CPU = { os: 'linux', gpu: 'cpu' }
const sha256 = (bytes: string) => createHash('sha256').update(bytes).digest('hex')

describe('builds', () => {
  let app: SharedApp
  let acme: Tenant
  before(async () => {
    app = await startShared({ builds: 'acme,rival' })
    acme = await app.account('acme')
  })
  after(() => app[Symbol.asyncDispose]())

  const send = (method: string, path: string, body?: unknown, tenant = acme) =>
    tenant.call(`${BUILDER}${path}`, { method, ...(body !== undefined && { body: JSON.stringify(body) }) })
  const mustBe = async (schema: string, status: number, answer: ReturnType<typeof send>) => {
    const { json, text, ...rest } = await answer
    assert.equal(rest.status, status, text)
    if (status !== 204) checkAgainstSchema(schema, json)
    return json
  }
  const refused = async (status: number, code: string, answer: ReturnType<typeof send>) => {
    const json = await mustBe('Problem', status, answer)
    assert.equal(json.error, code)
    return json
  }
  const announce = (bytes: string, kind = 'model', tenant = acme) =>
    send('POST', '/blobs', { kind, filename: `${kind}.bin`, sha256: sha256(bytes), sizeBytes: bytes.length }, tenant)
  const put = (url: string, bytes: string) => {
    const { pathname, search } = new URL(url)
    return call(app.url, pathname + search, {
      method: 'PUT',
      body: bytes,
      headers: { 'x-goog-if-generation-match': '0' },
    })
  }
  const upload = async (bytes: string, kind = 'model') => {
    const { blobId, uploadUrl } = await mustBe('Announced', 201, announce(bytes, kind))
    assert.equal((await put(uploadUrl, bytes)).status, 200)
    return blobId as string
  }
  const create = (definition: object = { baseComfyVersion: 'v0.3.40' }, name = 'studio') =>
    mustBe('SavedBuild', 201, send('POST', '/builds', { name, definition }))

  test('only accounts that the operator names may, with every operation', async () => {
    const other = await app.account('other')
    for (const path of ['/builds', '/blobs', '/base-images', '/build-targets', '/model-directories', '/builds/bld-1'])
      await refused(403, 'FEATURE_NOT_ENABLED', send('GET', path, undefined, other))
    await refused(403, 'FEATURE_NOT_ENABLED', send('POST', '/builds', { name: 'x', definition: {} }, other))
    await refused(403, 'FEATURE_NOT_ENABLED', announce('x', 'model', other))
    assert.equal((await call(app.url, `${BUILDER}/builds`)).status, 401)
    // As the command line sends its key.
    const answer = await call(app.url, `${BUILDER}/builds`, { headers: { 'x-api-key': acme.key } })
    assert.equal(answer.status, 200)
  })

  test('a definition comes back as it was saved, and one that was changed elsewhere is not overwritten', async () => {
    const definition = { baseComfyVersion: 'v0.3.40', environment: { os: 'Linux' }, ofTomorrow: [1] }
    const build = await create(definition)
    const found = await mustBe('Build', 200, send('GET', `/builds/${build.id}`))
    assert.deepEqual(found.definition, definition)
    assert.equal(found.workspaceId, 'acme')
    const change = (expectedUpdatedAt: string | null) =>
      send('PATCH', `/builds/${build.id}`, { definition: { baseComfyVersion: 'v2' }, expectedUpdatedAt })
    const changed = await mustBe('SavedBuild', 200, change(build.updatedAt))
    assert.notEqual(changed.updatedAt, build.updatedAt)
    await refused(409, 'STALE', change(build.updatedAt))
    await refused(409, 'STALE', change('yesterday'))
    await mustBe('SavedBuild', 200, change(null))
  })

  test('every fault of a definition is told with its field', async () => {
    const model = { type: 'vae', filename: 'a.safetensors', sourceUri: 'https://example.com/a.safetensors' }
    const faults: [object, string][] = [
      [{ models: [{ ...model, type: '../x' }] }, 'models[0].type'],
      [{ models: [{ ...model, type: 'custom_nodes/x' }] }, 'models[0].type'],
      [{ models: [model, { ...model, filename: 'A.safetensors' }] }, 'models[1]'],
      [{ models: [{ ...model, filename: 'con.txt' }] }, 'models[0].filename'],
      [{ models: [{ ...model, blobId: 'blob-1' }] }, 'models[0].blobId'],
      [{ models: [{ ...model, sourceUri: 'http://example.com/a' }] }, 'models[0].sourceUri'],
      [{ models: [{ ...model, sourceUri: 'https://me:secret@example.com/a' }] }, 'models[0].sourceUri'],
      [{ models: [{ ...model, sha256: '12' }] }, 'models[0].sha256'],
      [
        { customNodes: [{ name: 'p', blobId: 'b', repository: 'https://github.com/a/b' }] },
        'customNodes[0].repository',
      ],
      [{ customNodes: [{ name: 'p', id: 'p' }] }, 'customNodes[0].registryVersion'],
      [{ customNodes: [{ name: '-p', blobId: 'b' }] }, 'customNodes[0].name'],
      [
        { customNodes: [{ name: 'p', repository: 'https://github.com/a/b', gitRef: '--upload-pack=x' }] },
        'customNodes[0].gitRef',
      ],
      [{ customNodes: [{ name: 'p', repository: 'file:///etc' }] }, 'customNodes[0].repository'],
      [{ customNodes: [{ name: 'p', registryVersion: '1' }] }, 'customNodes[0].registryVersion'],
      [{ baseComfyVersion: '--x' }, 'baseComfyVersion'],
      [{ baseImage: null }, 'baseImage'],
      [{ pipDependencies: 'x'.repeat(65_537) }, 'pipDependencies'],
      [{ modelPolicy: { mode: 'none', list: [] } }, 'modelPolicy'],
      [{ models: [{ type: 'vae', filename: 'a', blobId: 'blob-none' }] }, 'blob:blob-none'],
      [{ models: Array.from({ length: 513 }, () => model) }, 'models'],
    ]
    for (const [definition, field] of faults) {
      const answer = await refused(400, 'INVALID_DEFINITION', send('POST', '/builds', { name: 'x', definition }))
      assert.ok(
        answer.invalid.some((fault: { field: string }) => fault.field === field),
        JSON.stringify([definition, answer]).slice(0, 500),
      )
      assert.doesNotMatch(JSON.stringify(answer), /secret/)
    }
    await refused(400, 'INVALID_REQUEST', send('POST', '/builds', { definition: {} }))
  })

  test('a model that may not be fetched is a warning when it is saved, and refused when it is cut', async () => {
    const sourceUri = 'https://169.254.169.254/latest/meta-data'
    const build = await create({
      baseComfyVersion: 'v1',
      models: [{ type: 'vae', filename: 'v.safetensors', sourceUri }],
    })
    assert.equal(build.warnings[0].field, 'models[0].sourceUri')
    const cut = await refused(
      400,
      'INVALID_DEFINITION',
      send('POST', `/builds/${build.id}/releases`, { targets: [CPU] }),
    )
    assert.equal(cut.invalid[0].field, 'models[0].sourceUri')
    const judged = await mustBe('Validation', 200, send('POST', `/builds/${build.id}/validate`))
    assert.equal(judged.valid, false)
  })

  test('an upload is taken when it is what was announced, once, and read back through the manifest', async () => {
    const { blobId, uploadUrl } = await mustBe('Announced', 201, announce('weights'))
    assert.equal((await put(uploadUrl, 'WEIGHTS')).status, 409)
    assert.equal((await put(uploadUrl, 'weights and more')).status, 413)
    assert.equal(
      (
        await put(
          uploadUrl.replace(/.(?=.{4}$)/, (one: string) => (one === 'A' ? 'B' : 'A')),
          'weights',
        )
      ).status,
      403,
    )
    assert.equal((await mustBe('Announced', 201, announce('weights'))).blobId, blobId)
    assert.equal((await put(uploadUrl, 'weights')).status, 200)
    // The answer was lost.
    assert.equal((await put(uploadUrl, 'weights')).status, 200)
    const again = await mustBe('Announced', 200, announce('weights'))
    assert.deepEqual([again.blobId, again.deduplicated], [blobId, true])
    const { blobs } = await mustBe('Blobs', 200, send('GET', '/blobs?kind=model'))
    assert.ok(blobs.some((each: { blobId: string }) => each.blobId === blobId))
    const model = { type: 'checkpoints', filename: 'a.safetensors', blobId }
    const build = await create({ baseComfyVersion: 'v0.3.40', models: [model] })
    const { releaseId } = await mustBe(
      'CutRelease',
      201,
      send('POST', `/builds/${build.id}/releases`, { targets: [CPU] }),
    )
    const { models } = await mustBe('Manifest', 200, send('GET', `/releases/${releaseId}/manifest`))
    assert.equal(models[0].sha256, sha256('weights'))
    const { pathname, search } = new URL(models[0].downloadUrl)
    assert.equal((await call(app.url, pathname + search)).text, 'weights')
    assert.equal((await put(models[0].downloadUrl, 'weights')).status, 403)
  })

  test('a file of an account is nobody else’s', async () => {
    const rival = await app.account('rival')
    const blobId = await upload('pack of acme', 'node_zip')
    assert.equal((await announce('pack of acme', 'node_zip', rival)).json.deduplicated, false)
    const definition = { customNodes: [{ name: 'p', blobId }] }
    await refused(400, 'INVALID_DEFINITION', send('POST', '/builds', { name: 'x', definition }, rival))
    await create({
      baseComfyVersion: 'v1',
      models: [{ type: 'vae', filename: 'known.safetensors', sourceUri: 'https://example.com/k', sha256: sha256('k') }],
    })
    const resolve = async (tenant: Tenant) =>
      (
        await mustBe(
          'ResolvedModels',
          200,
          send('POST', '/models/resolve', { filenames: ['known.safetensors', 'x'] }, tenant),
        )
      ).results
    const candidate = {
      sourceUri: 'https://example.com/k',
      sha256: sha256('k'),
      type: 'vae',
      verified: false,
      confidence: 0.5,
    }
    assert.deepEqual(await resolve(acme), [
      { filename: 'known.safetensors', candidates: [candidate] },
      { filename: 'x', candidates: [] },
    ])
    assert.deepEqual(
      (await resolve(rival)).map((each: { candidates: [] }) => each.candidates.length),
      [0, 0],
    )
  })

  test('the same definition is the same release; it waits for a builder and says so; deleting is harmless twice', async () => {
    const build = await create({ baseComfyVersion: 'v9' })
    const cut = (targets: unknown) => send('POST', `/builds/${build.id}/releases`, { targets })
    const first = await mustBe('CutRelease', 201, cut([CPU]))
    assert.equal((await mustBe('CutRelease', 201, cut([CPU]))).releaseId, first.releaseId)
    // Scanned on another machine.
    const definition = { baseComfyVersion: 'v9', environment: { os: 'Linux', pythonVersion: '3.11.7' } }
    assert.equal((await send('PATCH', `/builds/${build.id}`, { definition, expectedUpdatedAt: null })).status, 200)
    assert.equal((await mustBe('CutRelease', 201, cut([CPU]))).releaseId, first.releaseId)
    assert.equal((await call(app.url, new URL(first.statusUrl).pathname)).status, 401)
    const release = await mustBe('Release', 200, send('GET', `/releases/${first.releaseId}`))
    assert.deepEqual(
      [release.status, release.version, release.deployable, release.artifactCounts.queued],
      ['queued', 1, false, 1],
    )
    assert.match(release.artifacts[0].waitingReason, /no builder for linux\/cpu/)
    const log = await mustBe('ReleaseLog', 200, send('GET', `/releases/${first.releaseId}/logs?os=linux&gpu=cpu`))
    assert.deepEqual([log.log, log.truncated], ['', false])
    assert.equal((await refused(400, 'INVALID_DEFINITION', cut([CPU, CPU]))).invalid[0].field, 'targets[1]')
    assert.equal(
      (await refused(400, 'INVALID_DEFINITION', cut([{ os: 'plan9', gpu: 'cpu' }]))).invalid[0].field,
      'targets[0]',
    )
    const { releases } = await mustBe('Releases', 200, send('GET', `/builds/${build.id}/releases`))
    assert.deepEqual(
      releases.map(({ version }: { version: number }) => version),
      [1],
    )
    for (const path of [`/releases/${first.releaseId}`, `/builds/${build.id}`, `/builds/${build.id}`])
      await mustBe('', 204, send('DELETE', path))
    await refused(404, 'NOT_FOUND', send('GET', `/builds/${build.id}`))
    await refused(404, 'NOT_FOUND', send('GET', `/releases/${first.releaseId}`))
  })

  test('a definition without a version of ComfyUI can be saved, and not released', async () => {
    const build = await create({})
    const answer = await refused(
      400,
      'INVALID_DEFINITION',
      send('POST', `/builds/${build.id}/releases`, { targets: [CPU] }),
    )
    assert.equal(answer.invalid[0].field, 'baseComfyVersion')
  })

  test('pages hold every build once', async () => {
    const names = ['one', 'two', 'three']
    for (const name of names) await create({}, `page ${name}`)
    const seen: string[] = []
    for (let cursor = ''; ; ) {
      const page = await mustBe('Builds', 200, send('GET', `/builds?limit=2${cursor && `&cursor=${cursor}`}`))
      seen.push(...page.builds.map(({ name }: { name: string }) => name))
      if (page.nextCursor === null) break
      cursor = page.nextCursor
    }
    for (const name of names) assert.equal(seen.filter((each) => each === `page ${name}`).length, 1)
  })

  test('snapshots and workflows become definitions, and what is left out is told', async () => {
    const desktop = {
      comfyui: { baseTag: 'v0.3.40' },
      customNodes: [
        {
          type: 'git',
          id: 'gp',
          dirName: 'gp',
          url: 'https://github.com/acme/gp.git',
          commit: 'a'.repeat(40),
          enabled: true,
        },
        { type: 'git', id: 'off', dirName: 'off', url: 'https://github.com/acme/off', enabled: false },
        { type: 'cnr', id: 'reg', dirName: 'reg', version: '1.2.3', enabled: true },
      ],
      pipPackages: { numpy: '2.0.0', torch: '2.9.0', broken: 'file:///x' },
      pythonVersion: '3.12',
    }
    const wrapped = { type: 'comfyui-desktop-2-snapshot', version: 2, snapshots: [desktop] }
    const manager = {
      comfyui: 'b'.repeat(40),
      git_custom_nodes: { 'https://github.com/acme/gp.git': { hash: 'a'.repeat(40), disabled: false } },
      cnr_custom_nodes: { reg: '1.2.3' },
      file_custom_nodes: [{ filename: 'single.py', disabled: false }],
      pips: { 'numpy==2.0.0': '', 'torch==2.9.0': '' },
    }
    const pack = { name: 'gp', repository: 'https://github.com/acme/gp', commit: 'a'.repeat(40) }
    for (const snapshot of [desktop, wrapped, manager]) {
      const { definition, report } = await mustBe('Resolved', 200, send('POST', '/snapshots/resolve', { snapshot }))
      assert.deepEqual(definition.customNodes, [pack])
      assert.equal(definition.pipDependencies, 'numpy==2.0.0')
      assert.deepEqual([report.notInRegistry, report.skippedPins], [['reg'], ['torch']])
      // What it becomes can be saved.
      await create(definition)
    }
    await refused(400, 'INVALID_REQUEST', send('POST', '/snapshots/resolve', { snapshot: { a: 1 } }))
    const hash = 'a'.repeat(40)
    const odd = {
      comfyui: '--upload-pack=x',
      git_custom_nodes: {
        'git@github.com:acme/by-ssh.git': { hash, disabled: false },
        'https://user:word@github.com/acme/private.git/': { hash: 'not-one', disabled: false },
        'file:///etc': { hash, disabled: false },
      },
    }
    const { definition, report } = await mustBe('Resolved', 200, send('POST', '/snapshots/resolve', { snapshot: odd }))
    assert.deepEqual(definition.customNodes, [
      { name: 'by-ssh', repository: 'https://github.com/acme/by-ssh', commit: hash },
      { name: 'private', repository: 'https://github.com/acme/private' },
    ])
    assert.deepEqual([report.unresolvedNodes, report.packsWithoutVersion], [['file:///etc'], ['private']])
    assert.equal(report.droppedComfyVersion, '--upload-pack=x')
    await create(definition)
    for (const workflow of [{}, { a: 1 }, { nodes: 5 }, { last_node_id: 3 }])
      await refused(400, 'INVALID_REQUEST', send('POST', '/workflows/resolve', { workflow }))
    const prompt = { '1': { class_type: 'FakeSave', inputs: {} }, '2': { class_type: 'OfNobody', inputs: {} } }
    const editor = {
      nodes: [
        { id: 1, type: 'FakeSave' },
        { id: 2, type: 'OfNobody' },
        { id: 3, type: 'Note' },
      ],
    }
    for (const [workflow, format] of [
      [prompt, 'api'],
      [editor, 'ui'],
    ] as const) {
      const answer = await mustBe('ResolvedWorkflow', 200, send('POST', '/workflows/resolve', { workflow }))
      assert.deepEqual([answer.format, answer.report.unresolvedClasses], [format, ['OfNobody']])
    }
  })

  test('every act is in the audit log', async () => {
    const build = await create({ baseComfyVersion: 'v7' })
    await mustBe('CutRelease', 201, send('POST', `/builds/${build.id}/releases`, { targets: [CPU] }))
    await mustBe('', 204, send('DELETE', `/builds/${build.id}`))
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` }
    const { json } = await call(app.url, `/admin/v1/audit?subject=${build.id}`, { headers })
    const acts = json.records.map(({ action, outcome }: { action: string; outcome: string }) => [action, outcome])
    assert.deepEqual(acts.reverse(), [
      ['build.create', 'saved'],
      ['release.create', 'cut'],
      ['build.delete', 'done'],
    ])
  })

  test('they are off unless the operator switches them on, and outlast a restart', async () => {
    const overrides = { engines: [] }
    await using off = await startTestApp({ overrides })
    assert.equal((await call(off.url, `${BUILDER}/builds`)).json.error, 'FEATURE_NOT_ENABLED')
    const local = await startTestApp({ settings: { builds: 'local' }, overrides })
    const body = JSON.stringify({ name: 'mine', definition: { baseComfyVersion: 'v1' } })
    const made = await call(local.url, `${BUILDER}/builds`, { method: 'POST', body })
    assert.equal(made.status, 201, made.text)
    await using again = await local.restart()
    assert.deepEqual((await call(again.url, `${BUILDER}/builds/${made.json.id}`)).json.definition, {
      baseComfyVersion: 'v1',
    })
  })
})

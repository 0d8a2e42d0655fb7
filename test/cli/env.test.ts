/** `atelier env` against a whole service with a builder: from a folder on disk to a deployment that moves and goes back. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import sharp from 'sharp'
import { parse, stringify } from 'yaml'
import { readChunks, writeChunks } from '../../lib/files/png-chunks.ts'
import { type SharedApp, startShared, type Tenant } from '../support/app/start-shared.ts'
import { withoutUv } from '../support/builds/bench.ts'
import { comfyuiFiles, packFiles, tinyModel, writeFolder, writeRepository, zipOf } from '../support/builds/packages.ts'
import { serveRegistry } from '../support/builds/registry-server.ts'
import type { CommandResult } from '../support/cli/atelier.ts'
import { runInProcess } from '../support/cli/in-process.ts'

// What is built runs: without packs as the whole fake ComfyUI, with packs as the little one that tries their imports.
const FAKE = fileURLToPath(new URL('../support/engines/fake-comfyui/main.ts', import.meta.url))
const SOURCE = comfyuiFiles()
const MAIN = `import os, sys
packs = os.path.join(os.path.dirname(os.path.abspath(__file__)), "custom_nodes")
if not any(os.path.isdir(os.path.join(packs, name)) for name in os.listdir(packs)):
    node, fake = ${JSON.stringify([process.execPath, FAKE])}
    os.execv(node, [node, fake, "--port", sys.argv[sys.argv.index("--port") + 1]])
${SOURCE['main.py']}`

describe('atelier env', () => {
  let app: SharedApp
  let ana: Tenant
  let folder: string
  let registry: Awaited<ReturnType<typeof serveRegistry>>
  before(async () => {
    registry = await serveRegistry([
      { id: 'published', version: '1.2.3', zip: zipOf(packFiles('Published')), classes: ['Published'] },
      { id: 'published', version: '2.0.0', zip: zipOf(packFiles('Published')), status: 'Pending' },
    ])
    folder = await mkdtemp(path.join(tmpdir(), 'atelier-env-'))
    const comfyui = await writeFolder(path.join(folder, 'source'), { ...SOURCE, 'main.py': MAIN })
    const wheels = await writeFolder(path.join(folder, 'wheels'), { README: '' })
    const builder = {
      folder: path.join(folder, 'builder'),
      comfyui,
      wheels: [wheels],
      registry: registry.origin,
      targets: ['linux/cpu'],
      spare: '1MiB',
    }
    await writeFile(path.join(folder, 'builder.json'), JSON.stringify(builder))
    // Without uv nothing can be made, and what is tested then needs no builder.
    const builds: Record<string, string> = withoutUv === false ? { builder: path.join(folder, 'builder.json') } : {}
    app = await startShared({ ...builds, builds: 'ana', releaseEngines: '2' })
    ana = await app.account('ana')
  })
  after(async () => {
    await app[Symbol.asyncDispose]()
    await registry[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  })

  const atelier = (...args: string[]): Promise<CommandResult> =>
    runInProcess(['env', ...args], { cwd: folder, env: { ATELIER_BASE_URL: app.url, ATELIER_TOKEN: ana.key } })
  async function succeed(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await atelier(...args)
    assert.equal(code, 0, `${args.join(' ')}\n${stdout}${stderr}`)
    return stdout
  }
  const json = async (...args: string[]) => JSON.parse(await succeed(...args, '--json'))
  async function refuse(code: number, ...args: string[]): Promise<string> {
    const told = await atelier(...args)
    assert.equal(told.code, code, told.stdout + told.stderr)
    return told.stderr
  }
  const readFileAt = async (name: string) => parse(await readFile(path.join(folder, name), 'utf8'))
  const write = async (name: string, content: object) => {
    await writeFile(path.join(folder, name), JSON.stringify(content))
    return name
  }
  const found = async (name: string) => (await readFileAt(`${name}/comfy-build.yaml`)).definition

  test('from a folder to a release: init, push, release, show, logs', { skip: withoutUv }, async () => {
    const studio = path.join(folder, 'studio')
    await writeFolder(path.join(studio, 'custom_nodes/spark'), packFiles('Spark'))
    await writeFolder(path.join(studio, 'models/loras/sdxl'), { 'notes.txt': 'no model' })
    await writeFile(path.join(studio, 'models/loras/sdxl/a.safetensors'), tinyModel('a'))
    await writeFile(path.join(studio, 'models/loose.safetensors'), tinyModel('loose'))

    assert.match(await refuse(2, 'push', 'studio'), /atelier env init makes one/)
    const told = await succeed('init', 'studio', '--comfy', '0.3.40')
    assert.match(told, /ComfyUI v0\.3\.40, 1 packs, 1 models\n/)
    assert.match(told, /note: models\/loose\.safetensors lies in no folder/)
    assert.match(await refuse(2, 'init', 'studio'), /is there already; --force/)
    const waiting = 'would upload pack spark\nwould upload model loras/sdxl/a.safetensors\n'
    assert.equal(await succeed('push', 'studio', '--dry-run'), waiting)
    const pushed = await json('push', 'studio')
    assert.deepEqual([pushed.created, pushed.uploaded], [true, 2])
    const again = await json('push', 'studio')
    assert.deepEqual([again.created, again.uploaded, again.build], [false, 0, pushed.build])
    const spec = await readFileAt('studio/comfy-build.yaml')
    assert.deepEqual([spec.schema, spec.id, spec.syncedRevision], ['comfy-build/1', pushed.build, again.updatedAt])
    assert.equal(spec.definition.models[0].localPath, 'models/loras/sdxl/a.safetensors')

    const cut = await atelier('release', 'studio')
    assert.equal(cut.code, 0, cut.stdout + cut.stderr)
    assert.match(cut.stdout, /^release 1 \(rel-\w+\): complete, can be deployed\n {2}linux\/cpu: ready\n/)
    assert.match(cut.stderr, /== validate[\s\S]*== done/)
    assert.match(await succeed('logs', 'studio'), /pack spark is sha256 /)
    assert.match(await succeed('show', 'studio'), /^packs +spark$/m)

    // Somebody else changes it.
    const change = { name: 'studio', definition: { baseComfyVersion: 'v0.3.41' } }
    const body = JSON.stringify({ ...change, expectedUpdatedAt: null })
    assert.equal((await ana.call(`/builder/v1/builds/${pushed.build}`, { method: 'PATCH', body })).status, 200)
    assert.match(await refuse(1, 'push', 'studio'), /^atelier: stale: .* --force overwrites it$/m)
    await succeed('push', 'studio', '--force')
    assert.equal((await json('show', 'studio')).definition.baseComfyVersion, 'v0.3.40')
    await succeed('delete', 'studio')
  })

  test('a deployment is made, moved, rolled back and deleted, and waits until it serves', {
    skip: withoutUv,
  }, async () => {
    await writeFolder(path.join(folder, 'live'), { 'main.py': '' })
    await succeed('init', 'live', '--comfy', 'v0.3.40')
    await succeed('push', 'live')
    await succeed('release', 'live')
    const up = await succeed('up', 'live', '--min', '1')
    assert.match(up, /^production is ready with release 1 \(revision 1\) after [\d.]+ s\nhttp:/)
    assert.match(await succeed('up', 'live'), /^production is ready with release 1 \(revision 1\)/)
    const { definition, ...spec } = await readFileAt('live/comfy-build.yaml')
    const modelPolicy = { mode: 'blocklist', list: [] }
    await writeFile(
      path.join(folder, 'live/comfy-build.yaml'),
      stringify({ ...spec, definition: { ...definition, modelPolicy } }),
    )
    await succeed('push', 'live')
    await succeed('release', 'live')
    assert.match(await succeed('up', 'live'), /^production is ready with release 2 \(revision 2\)/)
    assert.match(await succeed('rollback', 'production'), /^production is ready with release 1 \(revision 3\)/)
    assert.match(await succeed('move', 'production', '2'), /^production is ready with release 2 \(revision 4\)/)
    assert.match(await succeed('history', 'live/production'), /^4 +current +2 +update .*\n3 +- +1 +rollback to 1 /m)
    assert.match(await succeed('ls'), /live +0 +0 +2 \(can be deployed\) +production: ready, release 2$/m)
    assert.match(await succeed('show', 'production'), /^engines +1 to 1 on cpu in local$/m)
    assert.match(await succeed('logs', 'production'), /To see the GUI go to/)
    assert.match(await refuse(1, 'move', 'production', '9'), /the build has no release 9; it has 2, 1/)
    assert.match(await refuse(1, 'cancel', 'production'), /^no_pending_update: /)
    assert.match(await refuse(1, 'delete', 'live'), /^build_in_use: .*production/)
    assert.equal((await json('stop', 'production')).stopReason, 'user')
    // The folder of a release that nothing uses may go: it is made again from its lock.
    await rm(path.join(folder, 'builder/releases'), { recursive: true })
    assert.match(await succeed('up', 'live'), /^production is ready with release 2 \(revision 4\)/)
    assert.equal(await succeed('delete', 'production'), 'production is deleted\n')
    assert.match(await refuse(1, 'show', 'production'), /there is no deployment production/)
    await succeed('delete', 'live')
  })

  test('a release that cannot be made ends with 1, and says why', { skip: withoutUv }, async () => {
    await writeFolder(path.join(folder, 'broken/custom_nodes/bad'), {
      '__init__.py': 'NODE_CLASS_MAPPINGS = {"Bad": 1}\nimport nowhere',
    })
    await succeed('init', 'broken', '--comfy', 'v0.3.40')
    await succeed('push', 'broken')
    const cut = await atelier('release', 'broken')
    assert.equal(cut.code, 1)
    assert.match(cut.stdout, /linux\/cpu: failed: validate: .*bad[\s\S]*nowhere/)
    assert.match(await refuse(1, 'up', 'broken'), /no release that can be deployed/)
    assert.match(
      await refuse(1, 'release', 'broken', '--target', 'linux/amd'),
      /^invalid_definition: [\s\S]*targets\[0\]/,
    )
  })

  test('a pack with a history is named by repository and commit, one with changes is uploaded as it lies there', async () => {
    const packs = path.join(folder, 'history/custom_nodes')
    const commit = await writeRepository(path.join(packs, 'kept'), packFiles('Kept'))
    await writeRepository(path.join(packs, 'changed'), packFiles('Changed'))
    const { execFileSync } = await import('node:child_process')
    for (const name of ['kept', 'changed'])
      execFileSync('git', [
        '-C',
        path.join(packs, name),
        'remote',
        'add',
        'origin',
        `git@github.com:someone/${name}.git`,
      ])
    await writeFile(path.join(packs, 'changed/__init__.py'), '')
    const told = await succeed('init', 'history')
    assert.match(told, /changed has changes that are not committed/)
    const { customNodes } = (await readFileAt('history/comfy-build.yaml')).definition
    assert.deepEqual(customNodes, [
      { name: 'changed', source: 'local', localPath: 'custom_nodes/changed' },
      {
        name: 'kept',
        source: 'git',
        localPath: 'custom_nodes/kept',
        repository: 'https://github.com/someone/kept',
        commit,
      },
    ])
  })

  test('from a workflow: its packs, its models, and what nobody knows; also out of a picture that carries it', async () => {
    const commit = 'a'.repeat(40)
    const url = 'https://models.example/style.safetensors'
    const sha256 = 'b'.repeat(64)
    const node = (id: number, type: string, properties: object, values: unknown[] = []) => ({
      ...{ id, type, properties, widgets_values: values, inputs: [], outputs: [] },
    })
    const workflow = {
      nodes: [
        node(1, 'KSampler', { cnr_id: 'comfy-core', ver: '0.3.40' }),
        node(2, 'Glow', { aux_id: 'someone/glow-pack', ver: commit }),
        node(3, 'Mist', { aux_id: 'someone/mist' }),
        node(4, 'Faces', { cnr_id: 'face-pack', ver: '1.2.3' }),
        node(5, 'OfNobody', {}),
        node(
          6,
          'LoraLoader',
          {
            cnr_id: 'comfy-core',
            models: [{ name: 'style.safetensors', url, directory: 'loras/x', hash: sha256, hash_type: 'SHA256' }],
          },
          ['style.safetensors', 1],
        ),
        node(7, 'VAELoader', { cnr_id: 'comfy-core', models: [{ name: '../up', url, directory: 'vae' }] }, [
          'only-here.safetensors',
        ]),
      ],
      links: [],
    }
    await writeFolder(path.join(folder, 'needs'), { 'x.txt': '' })
    await write('needs.json', workflow)
    const told = await succeed('init', 'needs', '--from-workflow', 'needs.json', '--comfy', 'v0.3.40')
    const { customNodes, models } = await found('needs')
    assert.deepEqual(customNodes, [
      { name: 'glow-pack', repository: 'https://github.com/someone/glow-pack', commit },
      { name: 'mist', repository: 'https://github.com/someone/mist' },
    ])
    assert.deepEqual(models, [{ type: 'loras/x', filename: 'style.safetensors', sourceUri: url, sha256 }])
    for (const note of [
      /which pack has OfNobody:/,
      /face-pack@1\.2\.3/,
      /no commit is known of mist:/,
      /no address is known of only-here\.safetensors:/,
    ])
      assert.match(told, note)

    const blank = await sharp({ create: { width: 1, height: 1, channels: 3, background: 'red' } })
      .png()
      .toBuffer()
    const chunk = { type: 'tEXt', body: Buffer.from(`workflow\0${JSON.stringify(workflow)}`) }
    const [head, ...others] = readChunks(blank)
    await writeFile(path.join(folder, 'made.png'), writeChunks([head, chunk, ...others]))
    await succeed('init', 'needs', '--from-workflow', 'made.png', '--force')
    assert.deepEqual((await found('needs')).customNodes, customNodes)
  })

  test('from snapshots of ComfyUI-Manager and the desktop, with the pins of a requirements list', async () => {
    const commit = 'c'.repeat(40)
    const url = 'https://github.com/someone/glow'
    await writeFolder(path.join(folder, 'shots'), { 'x.txt': '' })
    await write('manager.json', {
      ...{
        comfyui: commit,
        git_custom_nodes: { [url]: { hash: commit, disabled: false } },
        cnr_custom_nodes: { faces: '1.0.0' },
      },
      ...{ file_custom_nodes: [], pips: { 'torch==2.9.0': '', 'numpy==1.26.4': '' } },
    })
    const told = await succeed('init', 'shots', '--from-snapshot', 'manager.json')
    assert.match(told, /left out: faces/)
    const expected = { baseComfyVersion: commit, models: [], customNodes: [{ name: 'glow', repository: url, commit }] }
    const { schema: _, ...frozen } = await found('shots')
    assert.deepEqual(frozen, { ...expected, pipDependencies: 'numpy==1.26.4' })
    await write('desktop.json', {
      type: 'comfyui-desktop-2-snapshot',
      version: 2,
      snapshots: [
        {
          comfyui: { baseTag: 'v0.3.40' },
          customNodes: [{ type: 'git', id: 'glow', dirName: 'glow', url, commit, enabled: true }],
        },
      ],
    })
    await writeFile(path.join(folder, 'pins.txt'), 'numpy==2.0.0\n')
    await succeed('init', 'shots', '--from-snapshot', 'desktop.json', '--requirements', 'pins.txt', '--force')
    const desktop = await found('shots')
    assert.deepEqual([desktop.baseComfyVersion, desktop.pipDependencies], ['v0.3.40', 'numpy==2.0.0'])
    assert.match(await refuse(2, 'init', 'shots', '--from-snapshot', 'pins.txt', '--force'), /pins\.txt is no snapshot/)
  })

  test('packs that only the registry knows are pinned to what it has, and are built from there', {
    skip: withoutUv,
  }, async () => {
    await writeFolder(path.join(folder, 'pinned'), { 'x.txt': '' })
    await write('prompt.json', { '1': { class_type: 'Published', inputs: {} } })
    const newest = { name: 'published', id: 'published', registryVersion: '2.0.0' }
    const told = await succeed('init', 'pinned', '--from-workflow', 'prompt.json')
    assert.deepEqual((await found('pinned')).customNodes, [newest])
    assert.match(told, /of the registry, not examined there yet: published/)
    assert.match(told, /newest/)
    await write('older.json', {
      comfyui: 'c'.repeat(40),
      git_custom_nodes: {},
      cnr_custom_nodes: { published: '1.2.3' },
    })
    await succeed('init', 'pinned', '--from-snapshot', 'older.json', '--comfy', 'v0.3.40', '--force')
    assert.deepEqual((await found('pinned')).customNodes, [{ ...newest, registryVersion: '1.2.3' }])
    await succeed('push', 'pinned')
    const cut = await atelier('release', 'pinned')
    assert.match(cut.stderr, /pack published: taking published@1\.2\.3 from the registry 127\.0\.0\.1/, cut.stdout)
    assert.match(cut.stdout, /complete, can be deployed/)
  })

  test('from a server that runs: what it says, and what it does not say', async () => {
    const answers: Record<string, unknown> = {
      '/system_stats': { system: { comfyui_version: '0.3.40' }, devices: [] },
      '/object_info': {
        KSampler: { python_module: 'nodes' },
        Glow: { python_module: 'custom_nodes.glow' },
        Odd: { python_module: 'custom_nodes.odd' },
      },
      '/experiment/models': [{ name: 'loras', folders: [] }],
      '/experiment/models/loras': [{ name: 'x/style.safetensors', size: 7 }],
    }
    await using server = await serveJson(answers)
    await writeFolder(path.join(folder, 'frozen'), { 'x.txt': '' })
    const bare = await succeed('init', 'frozen', '--from-server', server.url)
    assert.match(bare, /ComfyUI-Manager does not answer there/)
    assert.match(bare, /whose source it does not say; add them to customNodes: glow, odd/)
    assert.match(bare, /no address is known of loras\/x\/style\.safetensors \(7 bytes\)/)
    assert.equal((await found('frozen')).baseComfyVersion, 'v0.3.40')

    // With a Manager in it, and after a build of the account that had this model.
    const [commit, sha256] = ['d'.repeat(40), 'e'.repeat(64)]
    answers['/v2/snapshot/get_current'] = {
      comfyui: commit,
      git_custom_nodes: { 'https://github.com/a/glow': { hash: commit } },
      cnr_custom_nodes: {},
    }
    const sourceUri = 'https://models.example/style.safetensors'
    const definition = { models: [{ type: 'loras/x', filename: 'style.safetensors', sourceUri, sha256 }] }
    const made = await ana.call('/builder/v1/builds', {
      method: 'POST',
      body: JSON.stringify({ name: 'before', definition }),
    })
    assert.equal(made.status, 201, made.text)
    const told = await succeed('init', 'frozen', '--from-server', server.url, '--force')
    assert.match(told, /add them to customNodes: odd\n/)
    const { customNodes, models, baseComfyVersion } = await found('frozen')
    assert.deepEqual([baseComfyVersion, models], [commit, definition.models])
    assert.deepEqual(customNodes, [{ name: 'glow', repository: 'https://github.com/a/glow', commit }])
    assert.match(
      await refuse(3, 'init', 'frozen', '--from-server', 'http://127.0.0.1:9', '--force'),
      /does not answer as a ComfyUI/,
    )
  })

  test('help names an example for every command', async () => {
    const { stdout } = await atelier('--help')
    for (const name of stdout.matchAll(/^ {2}(?!help)(\w+) (?:\[|<)/gm))
      assert.match((await atelier(String(name[1]), '--help')).stdout, /Example:\n {2}atelier env /)
  })
})

async function serveJson(answers: Readonly<Record<string, unknown>>) {
  const server = createServer((request, response) => {
    const answer = answers[request.url ?? '']
    response.writeHead(answer === undefined ? 404 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(answer ?? null))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/**
 * The official command line, unmodified, through every command of the check table (`docs/environments.md`): the ordinary case and the
 * refusals that its users meet. It exists only when `ATELIER_TEST_COMFY_CLI` names a virtual environment with comfy-cli 1.23.0;
 * `ATELIER_TEST_RECORD=1` writes down what it asked, which `npm test` asks again.
 */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { packFiles, writeFolder } from '../../support/builds/packages.ts'
import {
  COMFY_CLI,
  type Ended,
  type OfficialCli,
  openOfficialCli,
  TARGET,
  WORKFLOW,
  writePublicPacks,
} from '../../support/official-cli/official-cli.ts'
import { writeRecording } from '../../support/official-cli/recording.ts'
import { waitUntil } from '../../support/wait-until.ts'

const venv = COMFY_CLI
if (venv !== null) describe('the official command line', () => walk(venv))

function walk(venv: string): void {
  let cli: OfficialCli
  /** What later rows need of earlier ones. */
  const known = { build: '', first: '', second: '', deployment: '', gpu: '', region: '', url: '' }
  before(async () => {
    cli = await openOfficialCli(venv)
  })
  after(async () => {
    if (process.env['ATELIER_TEST_RECORD'] === '1') await writeRecording(cli.recorded, cli.tenant.key)
    await cli[Symbol.asyncDispose]()
  })

  async function fine(...words: string[]): Promise<Ended> {
    const ended = await cli.run(words)
    assert.equal(ended.code, 0, `comfy ${words.join(' ')}: ${ended.stdout}${ended.stderr}`)
    return ended
  }
  async function refused(code: string, ...words: string[]): Promise<Ended> {
    const ended = await cli.run(words)
    assert.deepEqual([ended.code, ended.error?.code], [1, code], `comfy ${words.join(' ')}: ${ended.stdout}`)
    return ended
  }
  const update = () => ['build', 'update', '.', '--yes', '--python', cli.python, '--comfy-version', 'v0.3.40']
  const submit = (n: number) =>
    cli.tenant.call(`/deployment/${known.deployment}/api/v2/jobs`, {
      method: 'POST',
      body: JSON.stringify({
        workflow: { '1': { class_type: 'DemoStamp', inputs: { filename_prefix: `job-${n}-end` } } },
      }),
    })
  const jobEnded = (id: string) =>
    waitUntil(async () => {
      const { json } = await cli.tenant.call(`/api/v2/jobs/${id}`)
      return ['succeeded', 'failed', 'canceled', 'expired'].includes(json.status) ? json.status : null
    })

  test('1 build init', async () => {
    const init = ['build', 'init', '.', '--name', 't', '--python', cli.python, '--comfy-version', 'v0.3.40']
    await fine(...init)
    assert.ok(existsSync(path.join(cli.folder, 'comfy-build.yaml')))
    const snapshot = await cli.another('snapshot', {
      's.json': JSON.stringify(SNAPSHOT),
      'w.json': JSON.stringify(WORKFLOW),
    })
    const from = await cli.run(['build', 'init', '.', '--name', 's', '--from-snapshot', 's.json'], snapshot)
    assert.equal(from.code, 0, from.stdout)
    const workflow = [
      'build',
      'init',
      '.',
      '--force',
      '--name',
      'w',
      '--from-workflow',
      'w.json',
      '--comfy-version',
      'v0.3.40',
    ]
    const ended = await cli.run(workflow, snapshot)
    assert.equal(ended.code, 0, ended.stdout)
  })

  test('2 build validate', async () => {
    const { data } = await fine('build', 'validate', '.')
    assert.ok(data.wire_definition, JSON.stringify(data))
    await fine('build', 'validate', '.', '--remote')
  })

  test('3 build push', async () => {
    await fine('build', 'push', '.', '--dry-run')
    const { data } = await fine('build', 'push', '.')
    assert.deepEqual([data.created, data.uploaded], [true, 2], JSON.stringify(data))
    assert.equal((await fine('build', 'push', '.')).data.uploaded, 0)
    known.build = data.id ?? data.build?.id
  })

  test('3 build push names packs by their repository, and tells of packs that only the registry has', async () => {
    const folder = await writePublicPacks(await cli.another('public', { 'models/vae/.keep': '' }))
    const init = ['build', 'init', '.', '--name', 'p', '--python', cli.python, '--comfy-version', 'v0.3.40']
    assert.equal((await cli.run(init, folder)).code, 0)
    const pushed = await cli.run(['build', 'push', '.'], folder)
    assert.deepEqual([pushed.code, pushed.data?.uploaded], [0, 0], pushed.stdout)
    await writeFolder(path.join(folder, 'custom_nodes/registry-pack'), {
      ...packFiles('RegistryNode'),
      'pyproject.toml': '[project]\nname = "registry-pack"\nversion = "1.2.3"\n',
    })
    assert.equal((await cli.run(update(), folder)).code, 0)
    assert.equal((await cli.run(['build', 'push', '.'], folder)).error?.code, 'build_registry_pin_missing')
  })

  test('4 build status', async () => {
    assert.equal((await fine('build', 'status', '.', '--no-scan')).data.remote.behind, false)
    const at = `/builder/v1/builds/${known.build}`
    const { json } = await cli.tenant.call(at)
    const body = JSON.stringify({ definition: json.definition, description: 'elsewhere', expectedUpdatedAt: null })
    assert.equal(await cli.ask('PATCH', at, body), 200)
    assert.equal((await fine('build', 'status', '.', '--no-scan')).data.remote.behind, true)
    await refused('build_spec_stale', 'build', 'push', '.')
    await fine('build', 'push', '.', '--force')
  })

  test('5 build ls', async () => {
    const { data } = await fine('build', 'ls')
    assert.equal(data.builds.length, 2)
  })

  test('6 build show', async () => {
    const { data } = await fine('build', 'show', '.')
    const build = data.build ?? data
    assert.equal(build.definition.baseComfyVersion, 'v0.3.40')
    assert.deepEqual(
      build.definition.customNodes.map(({ name }: { name: string }) => name),
      ['studio-pack'],
    )
  })

  test('7 build pull', async () => {
    assert.equal((await fine('build', 'pull', '.', '--yes')).data.written, true)
  })

  test('8 build update', async () => {
    await fine(...update())
  })

  test('9 build blob ls', async () => {
    const { data } = await fine('build', 'blob', 'ls', '--kind', 'model')
    assert.equal(data.blobs.length, 1)
  })

  test('10 to 13 build refs', async () => {
    await fine('build', 'refs', 'resolve', 'a.safetensors')
    assert.ok((await fine('build', 'refs', 'base-images')).stdout.includes('py3'))
    assert.ok((await fine('build', 'refs', 'build-targets')).stdout.includes('nvidia'))
    const folders = (await fine('build', 'refs', 'model-dirs')).stdout
    for (const name of ['checkpoints', 'loras', 'vae']) assert.ok(folders.includes(name), name)
  })

  test('14 build release create', async () => {
    const create = ['build', 'release', 'create', '.', '--target', TARGET, '--watch']
    const { data } = await fine(...create)
    known.first = idOf(data)
    assert.equal(idOf((await fine(...create)).data), known.first)
    await refused('build_definition_invalid', 'build', 'release', 'create', '.', '--target', TARGET, '--target', TARGET)
    const folder = await cli.another('broken', {
      'models/vae/.keep': '',
      'custom_nodes/broken/__init__.py': 'NODE_CLASS_MAPPINGS = {}\n',
      'custom_nodes/broken/install.py': 'raise SystemExit(4)\n',
    })
    const init = ['build', 'init', '.', '--name', 'b', '--python', cli.python, '--comfy-version', 'v0.3.40']
    assert.equal((await cli.run(init, folder)).code, 0)
    assert.equal((await cli.run(['build', 'push', '.'], folder)).code, 0)
    const failed = await cli.run(create, folder)
    assert.equal(failed.code, 1, failed.stdout)
    const shown = await cli.run(['build', 'release', 'show', '.'], folder)
    assert.match(shown.stdout, /assemble: pack broken: its install script failed/)
  })

  test('15 to 18 build release ls, show, logs, manifest', async () => {
    const { data: list } = await fine('build', 'release', 'ls', '.')
    assert.deepEqual(
      list.releases.map(({ version }: { version: number }) => version),
      [1],
    )
    const { data: shown } = await fine('build', 'release', 'show', '.')
    assert.equal((shown.release ?? shown).deployable, true)
    const logs = await fine('build', 'release', 'logs', '.', '--target', TARGET, '--follow')
    assert.match(logs.stdout, /== assemble/)
    const { data: manifest } = await fine('build', 'release', 'manifest', '.')
    const [model] = (manifest.manifest ?? manifest).models
    assert.match(model.sha256, /^[0-9a-f]{64}$/)
    const read = await fetch(model.downloadUrl)
    assert.deepEqual(
      Buffer.from(await read.arrayBuffer()),
      readFileSync(path.join(cli.folder, 'models/checkpoints/a.safetensors')),
    )
  })

  test('19 deploy refs compute', async () => {
    const { data } = await fine('deploy', 'refs', 'compute')
    const [place] = data.regions
    known.region = place.region
    known.gpu = place.gpus[0].gpuClass
    await fine('deploy', 'refs', 'compute', '--region', known.region)
  })

  test('20 deploy up', async () => {
    await refused('deploy_missing_input', 'deploy', 'up', '.', '--min', '0', '--max', '1')
    await refused('deploy_compute_unavailable', 'deploy', 'up', '.', '--gpu', 'h900', '--region', known.region)
    const up = ['deploy', 'up', '.', '--gpu', known.gpu, '--region', known.region, '--min', '0', '--max', '1']
    const { data } = await fine(...up)
    const { created, name, status } = data.deployment
    assert.deepEqual([created, name, status], [true, 'production', 'ready'])
    known.deployment = data.deployment.id
    known.url = (await cli.tenant.call(`/deploy/v1/deployments/${known.deployment}`)).json.endpointUrl
    assert.equal((await fine(...up)).changed, false)
  })

  test('21 to 23 deploy ls, show, status', async () => {
    for (const more of [[], ['--workspace'], ['--all'], ['--status', 'ready']]) {
      const { data } = await fine('deploy', 'ls', '.', ...more)
      const [row] = data.deployments
      assert.deepEqual([row.name, row.status, row.releaseVersion], ['production', 'ready', 1], JSON.stringify(row))
    }
    const { data: shown } = await fine('deploy', 'show', '.')
    assert.equal((shown.deployment ?? shown).revision, 1)
    const { data: status } = await fine('deploy', 'status', '.')
    assert.match(JSON.stringify(status), /"behind":\s*false/)
    assert.match(JSON.stringify(status), /"capacity"/)
  })

  test('24 deploy run', async () => {
    await refused('deploy_workflow_format_ui', 'deploy', 'run', '.', '--workflow', 'ui.json')
    const { data } = await fine('deploy', 'run', '.', '--workflow', 'w.json')
    assert.deepEqual([data.job.status, data.job.releaseVersion], ['succeeded', 1], JSON.stringify(data))
    assert.equal(readdirSync(path.join(cli.folder, 'outputs'), { recursive: true }).length > 0, true)
    assert.equal(data.outputs.length, 1)
    // The input is there already.
    await fine('deploy', 'run', '.', '--workflow', 'w.json', '--no-upload')
  })

  test('25 and 26 deploy logs, events', async () => {
    assert.match((await fine('deploy', 'logs', '.')).stdout, /To see the GUI go to/)
    const { data } = await fine('deploy', 'events', '.')
    const statuses = data.events.map(({ status }: { status: string }) => status)
    assert.deepEqual([statuses[0], statuses.at(-1)], ['queued', 'ready'])
    await fine('deploy', 'events', '.', '--release', 'v1')
  })

  test('27 deploy rename', async () => {
    await fine('deploy', 'rename', '.', 'live')
    await refused('deploy_invalid_name', 'deploy', 'rename', '.', 'Bad_Name')
  })

  test('28 deploy scale', async () => {
    await fine('deploy', 'scale', '.', '--min', '1', '--max', '2')
    await refused('deploy_missing_input', 'deploy', 'scale', '.', '--min', '1')
    await refused('deploy_immutable_compute', 'deploy', 'scale', '.', '--gpu', 'another')
  })

  test('20b deploy up of a new release under load', async () => {
    await writeFolder(path.join(cli.folder, 'custom_nodes/second-pack'), packFiles('SecondNode'))
    await fine(...update())
    const { data: pushed } = await fine('build', 'push', '.', '--release', '--target', TARGET)
    known.second = /"releaseId":\s*"([^"]+)"/.exec(JSON.stringify(pushed))?.[1] ?? ''
    await waitUntil(
      async () => (await cli.tenant.call(`/builder/v1/releases/${known.second}`)).json.status === 'complete',
    )
    const accepted = new Map<string, { readonly n: number; readonly version: number }>()
    const load = { isOver: false }
    const loading = (async () => {
      for (let n = 0; !load.isOver; n++) {
        const { status, json, text } = await submit(n)
        assert.equal(status, 201, text)
        accepted.set(json.id, { n, version: json.release_version })
        // So that some wait, and not more than end before the test does.
        await waitUntil(
          async () => (await cli.tenant.call('/api/v2/jobs?status=queued&limit=30')).json.jobs.length < 20,
        )
      }
    })()
    const { data } = await fine('deploy', 'up', '.').finally(() => {
      load.isOver = true
    })
    await loading
    assert.ok(data.previousRelease, JSON.stringify(data))
    const { json } = await cli.tenant.call(`/deploy/v1/deployments/${known.deployment}`)
    assert.deepEqual([data.deployment.id, data.deployment.revision], [known.deployment, 2])
    assert.deepEqual([json.revision, json.endpointUrl], [2, known.url])
    for (const id of accepted.keys()) assert.equal(await jobEnded(id), 'succeeded')
    const logs = { 1: cli.logOf(known.first), 2: cli.logOf(known.second) }
    for (const { n, version } of accepted.values()) {
      assert.ok(logs[version as 1 | 2].includes(`job-${n}-end`), `job ${n} ran on release ${version}`)
      assert.ok(!logs[version === 1 ? 2 : 1].includes(`job-${n}-end`), `job ${n} ran on release ${version} alone`)
    }
    assert.deepEqual([...new Set([...accepted.values()].map(({ version }) => version))].sort(), [1, 2])
  })

  test('29 deploy history', async () => {
    const { data } = await fine('deploy', 'history', '.')
    assert.deepEqual(
      data.revisions.map(({ revision, kind }: { revision: number; kind: string }) => [revision, kind]),
      [
        [2, 'update'],
        [1, 'create'],
      ],
    )
  })

  test('30 deploy rollback', async () => {
    await fine('deploy', 'rollback', '.')
    const { data } = await fine('deploy', 'history', '.')
    const [newest] = data.revisions
    assert.deepEqual([newest.revision, newest.kind, newest.fromRevision], [3, 'rollback', 1], JSON.stringify(newest))
    await fine('deploy', 'rollback', '.', '--to', 'v2')
  })

  test('31 deploy promote', async () => {
    const up = ['deploy', 'up', '.', '--create', '--name', 'canary', '--gpu', known.gpu, '--region', known.region]
    await fine(...up)
    const taken = await cli.run(['deploy', 'rename', '.', 'live', '--deployment', 'canary'])
    assert.equal(taken.error?.code, 'deploy_name_taken', taken.stdout)
    const early = await refused('deploy_conflict', 'deploy', 'rollback', '--deployment', 't/canary')
    assert.match(early.error?.message ?? '', /no earlier release/)
    await fine('deploy', 'rollback', '--deployment', 't/live', '--to', 'v1')
    await fine('deploy', 'promote', 't/canary', 't/live')
    const { json } = await cli.tenant.call(`/deploy/v1/deployments/${known.deployment}`)
    assert.deepEqual([json.releaseId, json.endpointUrl], [known.second, known.url])
    await fine('deploy', 'delete', '--deployment', 't/canary', '--yes')
  })

  test('32 deploy cancel', async () => {
    await writeFolder(path.join(cli.folder, 'custom_nodes/slow-pack'), packFiles('SlowNode'))
    await fine(...update())
    await fine('build', 'push', '.')
    await fine('build', 'release', 'create', '.', '--target', TARGET, '--watch')
    await cli.setGate(false)
    await fine('deploy', 'up', '.', '--no-watch')
    const { data } = await fine('deploy', 'cancel', '.')
    assert.ok(data.cancelledUpdate, JSON.stringify(data))
    await cli.setGate(true)
    const again = await fine('deploy', 'cancel', '.')
    assert.deepEqual([again.data.cancelledUpdate, again.changed], [null, false])
  })

  test('33 deploy stop', async () => {
    await fine('deploy', 'stop', '--deployment', known.deployment)
    const record = async () => (await cli.tenant.call(`/deploy/v1/deployments/${known.deployment}`)).json
    await waitUntil(async () => (await record()).status === 'stopped')
    assert.equal((await record()).stopReason, 'user')
    const { status, json } = await submit(0)
    assert.deepEqual([status, json.error.code], [422, 'deployment_stopped'])
    await fine('deploy', 'status', '.')
  })

  test('34 deploy start', async () => {
    await fine('deploy', 'start', '--deployment', known.deployment)
    await fine('deploy', 'status', '.', '--watch')
    const { json } = await cli.tenant.call(`/deploy/v1/deployments/${known.deployment}`)
    assert.deepEqual([json.status, json.endpointUrl], ['ready', known.url])
  })

  test('35 deploy delete', async () => {
    await refused('build_release_in_use', 'build', 'release', 'delete', known.second, '--yes')
    await refused('build_in_use', 'build', 'delete', '.', '--yes')
    await refused('deploy_delete_needs_confirm', 'deploy', 'delete', '--deployment', known.deployment)
    await fine('deploy', 'delete', '--deployment', known.deployment, '--yes')
    const listed = async (...more: string[]) => JSON.stringify((await fine('deploy', 'ls', '.', ...more)).data)
    assert.ok(!(await listed()).includes(known.deployment))
    assert.ok((await listed('--all')).includes(known.deployment))
    await refused('deploy_deleted', 'deploy', 'start', '--deployment', known.deployment)
  })

  test('36 build release delete', async () => {
    for (let times = 0; times < 2; times++) await fine('build', 'release', 'delete', known.second, '--yes')
  })

  test('37 build delete', async () => {
    for (let times = 0; times < 2; times++) await fine('build', 'delete', '--id', known.build, '--yes')
  })

  test('cloud status, and workflows in the cloud', async () => {
    await fine('cloud', 'status')
    await fine('cloud', 'status', '--plans')
    const cloud = ['--where', 'cloud']
    const { data: saved } = await fine('workflow', 'save', 'w.json', '--name', 'mine', ...cloud)
    const { data: list } = await fine('workflow', 'list', ...cloud)
    assert.match(JSON.stringify(list), /"mine"/)
    const id = saved.workflow_id
    await fine('workflow', 'get', id, ...cloud)
    await fine('workflow', 'delete', id, ...cloud)
    const gone = await cli.run(['workflow', 'get', id, ...cloud])
    assert.deepEqual([gone.code, gone.error?.code], [1, 'workflow_not_found'], gone.stdout)
    await rm(path.join(cli.folder, 'outputs'), { recursive: true, force: true })
    await writeFile(path.join(cli.folder, 'done'), '')
  })
}

function idOf(data: {
  readonly releaseId?: string
  readonly id?: string
  readonly release?: { readonly id: string }
}): string {
  return data.releaseId ?? data.release?.id ?? data.id ?? ''
}

const SNAPSHOT = {
  type: 'comfyui-desktop-2-snapshot',
  version: 2,
  snapshots: [
    {
      comfyui: { baseTag: 'v0.3.40' },
      customNodes: [
        {
          ...{ type: 'git', id: 'git-pack', dirName: 'git-pack', enabled: true },
          ...{ url: 'https://github.com/example-org/git-pack', commit: '0123456789abcdef0123456789abcdef01234567' },
        },
      ],
      pipPackages: { tiny: '1.0' },
      pythonVersion: '3.11.7',
    },
  ],
}

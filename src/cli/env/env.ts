/**
 * `atelier env`: environments as builds, releases and deployments, for whoever has only this command line. It speaks what the official
 * one speaks, and keeps the same file beside a ComfyUI.
 */
import type { Command } from 'commander'
import { toPairs, toTable } from '../admin/admin-command.ts'
import { RefusedError, type RunClient } from '../server/client.ts'
import { addServerCommands, type Options, type Said, type ServerCommand } from '../server/server-commands.ts'
import type { Finish, Terminal } from '../terminal.ts'
import { act, cancel, history, move, rollback, sayDeployment, scale, up } from './deploy.ts'
import {
  askEnv,
  BUILDER,
  type DeploymentWire,
  deploymentPath,
  findDeployment,
  listBuilds,
  listDeployments,
  listReleases,
  readBuild,
  readRelease,
} from './env-api.ts'
import { init } from './init.ts'
import { pull, push } from './push.ts'
import { cut, logs, pushedId, sayRelease } from './releases.ts'
import { hasSpec } from './spec-file.ts'

const NO_WATCH = ['--no-watch', 'do not wait until it is done'] as const
const COMPUTE = [
  ['--min <count>', 'engines that are always up; 0: the last one ends when nothing waits'],
  ['--max <count>', 'engines at most'],
  ['--gpu <class>', 'the class of graphics card'],
  ['--region <name>', 'where'],
] as const

const COMMANDS: readonly ServerCommand[] = [
  {
    usage: 'init [folder]',
    description: 'write comfy-build.yaml: what the ComfyUI in the folder consists of',
    flags: [
      ['--name <text>', 'what the build is called; default: as the folder'],
      ['--comfy <version>', 'a tag, a branch or a commit of ComfyUI, such as v0.3.40'],
      ['--from-workflow <file>', 'instead: what a workflow needs, or a picture that carries one'],
      ['--from-snapshot <file>', 'instead: a snapshot of ComfyUI-Manager, or an export of ComfyUI Desktop'],
      ['--from-server <url>', 'instead: what a ComfyUI server runs that this machine reaches'],
      ['--requirements <file>', 'pins of Python packages, in the form of a requirements file'],
      ['--force', 'replace the file'],
    ],
    example: 'atelier env init ~/ComfyUI --name studio',
    ask: init,
  },
  {
    usage: 'push [folder]',
    description: 'upload what only this machine has, and save the build; run again, it goes on',
    flags: [
      ['--dry-run', 'say what would be uploaded'],
      ['--force', 'overwrite what others have changed since'],
    ],
    example: 'atelier env push ~/ComfyUI',
    ask: push,
  },
  {
    usage: 'pull [folder]',
    description: 'take the build as the service has it',
    example: 'atelier env pull ~/ComfyUI',
    ask: pull,
  },
  {
    usage: 'release [folder]',
    description: 'cut a release of the build, and follow its log until it is made',
    flags: [
      ['--target <list>', 'such as linux/nvidia,linux/cpu; default: what the machines of the service are'],
      NO_WATCH,
    ],
    example: 'atelier env release ~/ComfyUI --target linux/nvidia',
    ask: cut,
  },
  {
    usage: 'up [folder]',
    description: 'deploy the newest release: make the deployment, or move it without refusing a job',
    flags: [
      ['--name <name>', 'of the deployment; default: the only one, or production'],
      ['--release <id|number>', 'another release than the newest'],
      ...COMPUTE,
      NO_WATCH,
    ],
    example: 'atelier env up ~/ComfyUI --min 1 --max 2',
    ask: up,
  },
  {
    usage: 'move <deployment> [release]',
    description: 'move a deployment to a release, by id or number',
    flags: [['--from <deployment>', 'to the release that this one serves'], NO_WATCH],
    example: 'atelier env move production 3',
    ask: move,
  },
  {
    usage: 'rollback <deployment> [revision]',
    description: 'move back to the release of an earlier revision: by default the one before',
    flags: [NO_WATCH],
    example: 'atelier env rollback production',
    ask: rollback,
  },
  {
    usage: 'cancel <deployment>',
    description: 'drop an update that waits',
    example: 'atelier env cancel production',
    ask: cancel,
  },
  {
    usage: 'history <deployment>',
    description: 'its revisions, the newest first',
    example: 'atelier env history production',
    ask: history,
  },
  {
    usage: 'scale <deployment>',
    description: 'change how many engines it has',
    flags: COMPUTE,
    example: 'atelier env scale production --min 1 --max 4',
    ask: scale,
  },
  {
    usage: 'stop <deployment>',
    description: 'take no jobs and end its engines',
    example: 'atelier env stop production',
    ask: act('stop'),
  },
  {
    usage: 'start <deployment>',
    description: 'start it again',
    example: 'atelier env start production',
    ask: act('start'),
  },
  { usage: 'ls', description: 'builds with their releases and deployments', example: 'atelier env ls', ask: list },
  {
    usage: 'show [what]',
    description: 'a build (folder or id), a release (id) or a deployment (id or name)',
    example: 'atelier env show production',
    ask: show,
  },
  {
    usage: 'logs [what]',
    description: 'what the builder said of a release, or what the engine of a deployment says',
    flags: [
      ['--target <os/gpu>', 'of a release: for which platform'],
      ['-f, --follow', 'of a release: until it is made'],
    ],
    example: 'atelier env logs production',
    ask: logs,
  },
  {
    usage: 'delete <what>',
    description: 'delete a build, a release or a deployment; what is in use is refused',
    example: 'atelier env delete dep-0a1b2c3d4e5f',
    ask: remove,
  },
]

export function addEnv(program: Command, terminal: Terminal, finish: Finish): void {
  const env = program
    .command('env')
    .description('environments: builds, releases and deployments of ComfyUI with its packs and models')
  addServerCommands(env, COMMANDS, { terminal, finish })
}

async function list(client: RunClient): Promise<Said> {
  const [builds, deployments] = [await listBuilds(client), await listDeployments(client).catch(noneWhenOff)]
  const rows: unknown[][] = []
  const told = []
  for (const build of builds) {
    const releases = await listReleases(client, build.id)
    const own = deployments.filter(({ buildId }) => buildId === build.id)
    const [newest] = releases
    told.push({ ...build, releases, deployments: own })
    rows.push([
      ...[build.id, build.name, build.numCustomNodes, build.numModels],
      newest === undefined ? null : `${newest.version} (${newest.deployable ? 'can be deployed' : newest.status})`,
      own.map(({ name, status, releaseVersion }) => `${name}: ${status}, release ${releaseVersion}`),
    ])
  }
  const headings = ['build', 'name', 'packs', 'models', 'newest release', 'deployments']
  const empty = 'no builds; begin with: atelier env init'
  return { answer: { builds: told }, lines: [toTable(headings, rows, { empty })] }
}

/** A service without engines of its own for releases builds them all the same. */
function noneWhenOff(error: unknown): readonly DeploymentWire[] {
  if (error instanceof RefusedError && error.lines[0]?.startsWith('feature_not_enabled')) return []
  throw error
}

async function show(client: RunClient, [what = '.']: readonly string[], _: Options, { cwd }: Terminal): Promise<Said> {
  if (what.startsWith('rel-')) return sayRelease(await readRelease(client, what))
  if (!what.startsWith('bld-') && !hasSpec(what, cwd)) return sayDeployment(await findDeployment(client, what))
  const id = what.startsWith('bld-') ? what : pushedId(what, cwd)
  const [build, releases] = [await readBuild(client, id), await listReleases(client, id)]
  const { name, updatedAt, definition } = build
  const { baseComfyVersion, customNodes = [], models = [] } = definition
  const rows = releases.map(({ version, id: release, status, deployable, createdAt }) => [
    ...[version, release, status, deployable ? 'yes' : 'no', createdAt],
  ])
  const pairs = toPairs([
    ['build', `${name} (${id})`],
    ['changed', updatedAt],
    ['ComfyUI', baseComfyVersion],
    ['packs', customNodes.map((pack) => pack.name)],
    ['models', models.map(({ type, filename }) => `${type}/${filename}`)],
  ])
  const headings = ['release', 'id', 'status', 'deployable', 'cut']
  return { answer: { ...build, releases }, lines: [pairs, '', toTable(headings, rows, { empty: 'no releases yet' })] }
}

async function remove(client: RunClient, [what]: readonly string[], _: Options, { cwd }: Terminal): Promise<Said> {
  const path = await pathToDelete(client, what, cwd)
  await askEnv(client, path, { method: 'DELETE' })
  return { answer: { deleted: what }, lines: [`${what} is deleted`] }
}

async function pathToDelete(client: RunClient, what: string, cwd: string): Promise<string> {
  if (what.startsWith('rel-')) return `${BUILDER}/releases/${encodeURIComponent(what)}`
  if (what.startsWith('bld-') || hasSpec(what, cwd))
    return `${BUILDER}/builds/${encodeURIComponent(what.startsWith('bld-') ? what : pushedId(what, cwd))}`
  return deploymentPath((await findDeployment(client, what)).id)
}

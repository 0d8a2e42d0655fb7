/** `atelier env up` and what follows: deployments on releases are made, moved, rolled back, scaled, stopped and watched until they serve. */
import { randomUUID } from 'node:crypto'
import { sleep } from '../../../lib/waiting/sleep.ts'
import { toPairs, toTable } from '../admin/admin-command.ts'
import type { RunClient } from '../server/client.ts'
import { type Ask, type Options, type Said, textOf } from '../server/server-commands.ts'
import { CommandError, EXIT, printLine, type Terminal, toPrintable } from '../terminal.ts'
import {
  askEnv,
  DEPLOY,
  type DeploymentWire,
  deploymentPath,
  findDeployment,
  findRelease,
  listDeployments,
  type RevisionWire,
} from './env-api.ts'
import { pushedId } from './releases.ts'

const LOOK_EVERY_MS = 500
/** Nothing more comes of these by themselves. */
const ENDED: ReadonlySet<string> = new Set(['unhealthy', 'stopped', 'stop_failed', 'failed'])

/** Makes the deployment of a build, or moves it to the release; starts it where it is stopped. */
export async function up(
  client: RunClient,
  [folder]: readonly string[],
  options: Options,
  terminal: Terminal,
): Promise<Said> {
  const buildId = pushedId(folder, terminal.cwd)
  const release = await findRelease(client, buildId, textOf(options, 'release'))
  const found = await choose(client, buildId, textOf(options, 'name'))
  if (found === null) {
    const made = await create(client, release.id, options)
    return watch(client, made.id, { releaseId: release.id, options, terminal })
  }
  const still = await untilStopped(client, found, terminal)
  const scaled = hasCompute(options) ? await scaleTo(client, still, options) : still
  if (scaled.releaseId !== release.id || scaled.pendingUpdate !== null)
    await moveTo(client, scaled, { releaseId: release.id })
  else if (ENDED.has(scaled.status)) await askEnv(client, deploymentPath(scaled.id, 'start'), { method: 'POST' })
  return watch(client, found.id, { releaseId: release.id, options, terminal })
}

/** What is being stopped is not started before it is. */
async function untilStopped(client: RunClient, found: DeploymentWire, terminal: Terminal): Promise<DeploymentWire> {
  const stop = new AbortController()
  const release = terminal.onSignal(() => stop.abort())
  try {
    let now = found
    while (now.status === 'stopping') {
      await sleep(LOOK_EVERY_MS, stop.signal)
      if (stop.signal.aborted) throw new CommandError('no longer watched; it is being stopped', EXIT.interrupted)
      now = await askEnv<DeploymentWire>(client, deploymentPath(found.id))
    }
    return now
  } finally {
    release()
  }
}

/** The one of this name; without a name the only one, or that called `production`. null: there is none. */
async function choose(client: RunClient, buildId: string, name: string | null): Promise<DeploymentWire | null> {
  const own = (await listDeployments(client)).filter((one) => one.buildId === buildId)
  const wanted = name ?? (own.length > 1 ? 'production' : null)
  const found = wanted === null ? own[0] : own.find((one) => one.name === wanted)
  if (found === undefined && name === null && own.length > 0)
    throw new CommandError(`the build has ${own.length} deployments: say which with --name`, EXIT.usage)
  return found ?? null
}

interface Compute {
  readonly gpuClass: string
  readonly region: string
  readonly min: number
  readonly max: number
}

const hasCompute = (options: Options) => ['gpu', 'region', 'min', 'max'].some((name) => textOf(options, name) !== null)

function readCompute(options: Options, { gpuClass, region, min, max }: Compute): Compute {
  const count = (name: string, otherwise: number) => {
    const text = textOf(options, name)
    if (text === null) return otherwise
    if (!/^\d{1,4}$/.test(text)) throw new CommandError(`--${name} must be a whole number`, EXIT.usage)
    return Number(text)
  }
  return {
    ...{ gpuClass: textOf(options, 'gpu') ?? gpuClass, region: textOf(options, 'region') ?? region },
    ...{ min: count('min', min), max: count('max', max) },
  }
}

async function create(client: RunClient, releaseId: string, options: Options): Promise<DeploymentWire> {
  const { regions } = await askEnv<{ regions: readonly { region: string; gpus: readonly { gpuClass: string }[] }[] }>(
    client,
    `${DEPLOY}/compute-catalog?levels=all`,
  )
  const place = regions.find(({ gpus }) => gpus.length > 0)
  const first = { gpuClass: place?.gpus[0]?.gpuClass ?? 'cpu', region: place?.region ?? 'local', min: 0, max: 1 }
  const name = textOf(options, 'name')
  return askEnv<DeploymentWire>(client, `${DEPLOY}/deployments`, {
    method: 'POST',
    headers: { 'Idempotency-Key': randomUUID() },
    body: { releaseId, computeConfig: readCompute(options, first), ...(name !== null && { name }) },
  })
}

const change = (client: RunClient, id: string, body: object) =>
  askEnv<DeploymentWire>(client, deploymentPath(id), { method: 'PATCH', body })

const scaleTo = (client: RunClient, { id, computeConfig }: DeploymentWire, options: Options) =>
  change(client, id, { computeConfig: readCompute(options, computeConfig) })

const moveTo = (
  client: RunClient,
  { id, revision: baseRevision }: DeploymentWire,
  goal: { readonly releaseId: string } | { readonly fromDeploymentId: string },
) => change(client, id, { baseRevision, ...goal })

/** To a release by id or number, or with `--from` to the one that another deployment serves. */
export async function move(
  client: RunClient,
  [wanted, release]: readonly string[],
  options: Options,
  terminal: Terminal,
): Promise<Said> {
  const found = await findDeployment(client, wanted)
  const from = textOf(options, 'from')
  if ((from === null) === (release === undefined))
    throw new CommandError('say where to: a release, or --from with a deployment that serves it', EXIT.usage)
  if (from !== null) {
    const source = await findDeployment(client, from)
    await moveTo(client, found, { fromDeploymentId: source.id })
    return watch(client, found.id, { releaseId: source.releaseId, options, terminal })
  }
  const goal = await findRelease(client, found.buildId, release)
  await moveTo(client, found, { releaseId: goal.id })
  return watch(client, found.id, { releaseId: goal.id, options, terminal })
}

export async function rollback(
  client: RunClient,
  [wanted, to]: readonly string[],
  options: Options,
  terminal: Terminal,
): Promise<Said> {
  const found = await findDeployment(client, wanted)
  if (to !== undefined && !/^r?\d{1,9}$/.test(to))
    throw new CommandError(
      `${JSON.stringify(to)} is no revision, such as 2; atelier env history ${wanted} lists them`,
      EXIT.usage,
    )
  const body = { baseRevision: found.revision, ...(to !== undefined && { toRevision: Number(to.replace('r', '')) }) }
  const changed = await askEnv<DeploymentWire>(client, deploymentPath(found.id, 'rollback'), { method: 'POST', body })
  return watch(client, found.id, {
    releaseId: changed.pendingUpdate?.releaseId ?? changed.releaseId,
    options,
    terminal,
  })
}

interface Watching {
  /** What is waited for. */
  readonly releaseId: string
  readonly options: Options
  readonly terminal: Terminal
}

/** Until it serves the release, or nothing more comes of it. */
async function watch(client: RunClient, id: string, { releaseId, options, terminal }: Watching): Promise<Said> {
  const stop = new AbortController()
  const release = terminal.onSignal(() => stop.abort())
  const beganAt = Date.now()
  let told = ''
  try {
    for (;;) {
      const found = await askEnv<DeploymentWire>(client, deploymentPath(id))
      const { status, pendingUpdate: pending, progress } = found
      const isThere = found.releaseId === releaseId && pending === null
      if (options['watch'] === false || (isThere && status === 'ready')) return sayWatched(found, beganAt)
      const problem = problemOf(found, releaseId)
      if (problem !== null) throw new CommandError(toPrintable(problem), EXIT.failed)
      const state = [status, describeProgress(progress), pending === null ? null : `update ${pending.status}`]
        .filter(Boolean)
        .join(', ')
      if (state !== told) printLine(terminal.stderr, toPrintable(state))
      told = state
      await sleep(LOOK_EVERY_MS, stop.signal)
      if (stop.signal.aborted)
        throw new CommandError(`no longer watched; it goes on: atelier env show ${id}`, EXIT.interrupted)
    }
  } finally {
    release()
  }
}

/** `staging_models, 1 of 3 models, 40 %` */
function describeProgress(progress: DeploymentWire['progress']): string | null {
  if (progress === null) return null
  const { step, modelsDone, modelsTotal = 0, bytesDone = 0, bytesTotal = 0 } = progress
  const share = bytesTotal > 0 ? `, ${Math.floor((100 * bytesDone) / bytesTotal)} %` : ''
  return modelsTotal > 0 ? `${step}, ${modelsDone} of ${modelsTotal} models${share}` : step
}

function problemOf(
  { name, status, error, stopReason, releaseId, pendingUpdate: pending }: DeploymentWire,
  goal: string,
) {
  if (pending?.status === 'failed')
    return `the update of ${name} failed, and it serves what it served: ${pending.error ?? 'no reason was given'}`
  if (pending !== null && pending.releaseId !== goal)
    return `another update of ${name} came in between; atelier env show says which`
  if (ENDED.has(status)) return `${name} is ${status}: ${error ?? stopReason ?? 'no reason was given'}`
  if (pending === null && releaseId !== goal)
    return `the update of ${name} ended before it landed; atelier env history shows what happened`
  return null
}

function sayWatched(found: DeploymentWire, beganAt: number): Said {
  const { name, status, releaseVersion, revision, endpointUrl } = found
  const seconds = ((Date.now() - beganAt) / 1000).toFixed(1)
  return {
    answer: found,
    lines: [
      `${name} is ${status} with release ${releaseVersion} (revision ${revision}) after ${seconds} s`,
      endpointUrl,
    ],
  }
}

export async function history(client: RunClient, [wanted]: readonly string[]): Promise<Said> {
  const { id, revision: current } = await findDeployment(client, wanted)
  const { items } = await askEnv<{ items: readonly RevisionWire[] }>(client, deploymentPath(id, 'revisions'))
  const rows = items.map(({ revision, releaseVersion, kind, fromRevision, createdAt, createdBy }) => [
    ...[revision, revision === current ? 'current' : null, releaseVersion],
    ...[fromRevision === undefined ? kind : `${kind} to ${fromRevision}`, createdAt, createdBy],
  ])
  const headings = ['revision', '', 'release', 'how', 'when', 'by']
  return { answer: { items }, lines: [toTable(headings, rows.reverse(), { empty: 'no revisions' })] }
}

export async function scale(client: RunClient, [wanted]: readonly string[], options: Options): Promise<Said> {
  if (!hasCompute(options)) throw new CommandError('say what: --min, --max, --gpu or --region', EXIT.usage)
  return sayDeployment(await scaleTo(client, await findDeployment(client, wanted), options))
}

export async function cancel(client: RunClient, [wanted]: readonly string[]): Promise<Said> {
  const { id } = await findDeployment(client, wanted)
  return sayDeployment(await askEnv<DeploymentWire>(client, deploymentPath(id, 'pending-update'), { method: 'DELETE' }))
}

export function act(name: 'start' | 'stop'): Ask {
  return async (client, [wanted]) => {
    const { id } = await findDeployment(client, wanted)
    return sayDeployment(await askEnv<DeploymentWire>(client, deploymentPath(id, name), { method: 'POST' }))
  }
}

export function sayDeployment(found: DeploymentWire): Said {
  const { computeConfig: compute, serving, pendingUpdate: pending } = found
  return {
    answer: found,
    lines: [
      toPairs([
        ['deployment', `${found.name} (${found.id})`],
        ['status', [found.status, found.error ?? found.stopReason].filter(Boolean).join(': ')],
        ['release', `${found.releaseVersion} (${found.releaseId}), revision ${found.revision}`],
        [
          'update',
          pending === null
            ? null
            : `${pending.status} to ${pending.releaseId}${pending.error === null ? '' : `: ${pending.error}`}`,
        ],
        ['engines', `${compute.min} to ${compute.max} on ${compute.gpuClass} in ${compute.region}`],
        [
          'now',
          serving === null
            ? null
            : `${serving.capacity.ready} ready, ${serving.capacity.busy} busy, ${serving.capacity.starting} starting, ${serving.jobsInQueue} jobs wait`,
        ],
        ['address', found.endpointUrl],
      ]),
    ],
  }
}

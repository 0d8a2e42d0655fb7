/** `atelier env release` and `logs`: a release is cut and followed until it is made, with what its builder says. */
import { sleep } from '../../../lib/waiting/sleep.ts'
import type { RunClient } from '../server/client.ts'
import { type Options, type Said, textOf } from '../server/server-commands.ts'
import { CommandError, EXIT, printLine, type Terminal, toPrintable } from '../terminal.ts'
import {
  askEnv,
  BUILDER,
  deploymentPath,
  findDeployment,
  listReleases,
  type ReleaseWire,
  readRelease,
} from './env-api.ts'
import { hasSpec, readSpec, specPathOf } from './spec-file.ts'

const LOOK_EVERY_MS = 1000

interface Target {
  readonly os: string
  readonly gpu: string
}

/** The build that the file of a folder was pushed as. */
export function pushedId(folder: string | undefined, cwd: string): string {
  const file = specPathOf(folder, cwd)
  const { id } = readSpec(file)
  if (id === null) throw new CommandError(toPrintable(`${file} is not pushed yet: atelier env push`), EXIT.usage)
  return id
}

export async function cut(
  client: RunClient,
  [folder]: readonly string[],
  options: Options,
  terminal: Terminal,
): Promise<Said> {
  const buildId = pushedId(folder, terminal.cwd)
  const wanted = textOf(options, 'target')
  const targets = wanted === null ? [await defaultTarget(client)] : wanted.split(',').map(readTarget)
  const { releaseId } = await askEnv<{ releaseId: string }>(client, `${BUILDER}/builds/${buildId}/releases`, {
    ...{ method: 'POST', body: { targets } },
  })
  const release =
    options['watch'] === false ? await readRelease(client, releaseId) : await follow(client, releaseId, terminal)
  return sayRelease(release, folder)
}

/** What the machines here are, the graphics card first. */
async function defaultTarget(client: RunClient): Promise<Target> {
  const { targets } = await askEnv<{ targets: readonly { target: Target }[] }>(client, `${BUILDER}/build-targets`)
  const [first] = targets
  if (first === undefined)
    throw new CommandError('no builder is connected: say for what with --target, such as linux/nvidia', EXIT.failed)
  return first.target
}

function readTarget(text: string): Target {
  const [os = '', gpu = '', ...others] = text.trim().split('/')
  if (os === '' || gpu === '' || others.length > 0)
    throw new CommandError(`--target ${JSON.stringify(text)} is not written like linux/nvidia`, EXIT.usage)
  return { os, gpu }
}

/** Until nothing of it is being made any more. What builders say goes to standard error, so that standard output has the answer alone. */
async function follow(client: RunClient, id: string, terminal: Terminal): Promise<ReleaseWire> {
  const stop = new AbortController()
  const release = terminal.onSignal(() => stop.abort())
  const told = new Map<string, number>()
  let waiting = ''
  try {
    for (;;) {
      const found = await readRelease(client, id)
      for (const { os, gpu, waitingReason } of found.artifacts) {
        if (waitingReason !== null && waitingReason !== waiting) {
          waiting = waitingReason
          printLine(terminal.stderr, toPrintable(waitingReason))
        }
        await tellLog(client, { id, os, gpu, told, terminal })
      }
      if (found.status === 'complete') return found
      await sleep(LOOK_EVERY_MS, stop.signal)
      if (stop.signal.aborted)
        throw new CommandError(`no longer followed; it is made all the same: atelier env show ${id}`, EXIT.interrupted)
    }
  } finally {
    release()
  }
}

interface Telling extends Target {
  readonly id: string
  /** How much of each log was told. */
  readonly told: Map<string, number>
  readonly terminal: Terminal
}

async function tellLog(client: RunClient, { id, os, gpu, told, terminal }: Telling): Promise<void> {
  const target = `${os}/${gpu}`
  const { log } = await readLog(client, id, { os, gpu })
  const from = told.get(target) ?? 0
  if (log.length <= from) return
  terminal.stderr.write(toPrintable(log.slice(from)))
  told.set(target, log.length)
}

export function sayRelease(release: ReleaseWire, folder?: string): Said {
  const failed = release.artifacts.filter(({ status }) => status === 'failed')
  return {
    answer: release,
    lines: [
      `release ${release.version} (${release.id}): ${release.status}${release.deployable ? ', can be deployed' : ''}`,
      ...release.artifacts.map(
        ({ os, gpu, status, failureReason, waitingReason }) =>
          `  ${os}/${gpu}: ${status}${(failureReason ?? waitingReason) ? `: ${failureReason ?? waitingReason}` : ''}`,
      ),
      ...(release.deployable ? [`Next: atelier env up${folder === undefined ? '' : ` ${folder}`}`] : []),
    ],
    exitCode: failed.length > 0 ? EXIT.failed : EXIT.ok,
  }
}

/** Of a release, or of the newest one of a build, what its builder said; of a deployment what its engine says. */
export async function logs(
  client: RunClient,
  [what = '.']: readonly string[],
  options: Options,
  terminal: Terminal,
): Promise<Said> {
  const isRelease = what.startsWith('rel-')
  if (!isRelease && !hasSpec(what, terminal.cwd)) {
    const { id } = await findDeployment(client, what)
    const answer = await askEnv<{ comfyuiLog: string }>(client, deploymentPath(id, 'logs'))
    return { answer, lines: [answer.comfyuiLog.trimEnd() || 'no engine of it has said anything yet'] }
  }
  const id = isRelease ? what : await newestOf(client, pushedId(what, terminal.cwd))
  if (options['follow'] === true) return sayRelease(await follow(client, id, terminal))
  const wanted = textOf(options, 'target')
  const [first] = (await readRelease(client, id)).artifacts
  const target = wanted === null ? first : readTarget(wanted)
  if (target === undefined) return { answer: { log: '' }, lines: ['it has no artifact'] }
  const answer = await readLog(client, id, target)
  const cutOff = answer.truncated ? ['(the rest was dropped: the log was too long)'] : []
  return { answer, lines: [answer.log.trimEnd() || 'nothing yet', ...cutOff] }
}

function readLog(client: RunClient, id: string, { os, gpu }: Target): Promise<{ log: string; truncated: boolean }> {
  return askEnv(client, `${BUILDER}/releases/${encodeURIComponent(id)}/logs?${new URLSearchParams({ os, gpu })}`)
}

async function newestOf(client: RunClient, buildId: string): Promise<string> {
  const [newest] = await listReleases(client, buildId)
  if (newest === undefined)
    throw new CommandError('the build has no release yet; cut one with: atelier env release', EXIT.failed)
  return newest.id
}

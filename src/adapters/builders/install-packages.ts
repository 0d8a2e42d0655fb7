/**
 * The environment of a release: made from the lock alone, each package checked against its hashes. Install scripts of packs run
 * afterwards; what they add is theirs, but what the lock says stays as the lock says. Nothing is believed because a program ended
 * well: what is installed is compared with the lock.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { nullWhenMissing } from '../../../lib/files/inside-folder.ts'
import { BuildFailure } from '../../domain/environments/builder.ts'
import type { Base } from './base-images.ts'
import { type PackageSources, pipEnvironment, uvSources } from './package-sources.ts'
import { pythonOf } from './release-folders.ts'
import { installedVersions, lockedVersions } from './requirements.ts'
import { failureOf, quoteLines, run, type Step } from './workshop.ts'

export interface Installing {
  readonly uv: string
  readonly base: Base
  readonly sources: PackageSources
  /** Of the build. */
  readonly folder: string
  readonly wheels: string
}

/** Throws BuildFailure. */
export async function installPackages(step: Step, installing: Installing): Promise<void> {
  const { uv, base, sources, folder, wheels } = installing
  const made = await run(
    step,
    [uv, 'venv', '--no-config', '--quiet', '--python', base.python.path, join(folder, 'venv')],
    { cwd: folder },
  )
  if (made.code !== 0)
    throw failureOf('assemble', `an environment of Python ${base.python.version} cannot be made`, made)
  const lock = join(folder, 'requirements.lock')
  await writeFile(lock, wheels)
  const count = lockedVersions(wheels).size
  step.say(`installing ${count} packages`)
  if (count > 0) {
    const synced = await run(
      step,
      [
        uv,
        'pip',
        'sync',
        '--no-config',
        '--require-hashes',
        '--python',
        pythonOf(folder),
        ...uvSources(sources, base.torch),
        lock,
      ],
      { cwd: step.scratch },
    )
    if (synced.code !== 0) throw toSyncFailure(synced)
  }
  await mustBeLocked(step, installing, 'the environment')
}

function toSyncFailure(ran: Awaited<ReturnType<typeof run>>): BuildFailure {
  const text = ran.lastLines.join('\n')
  if (!/hash mismatch/i.test(text)) return failureOf('assemble', 'the packages of the lock cannot be installed', ran)
  const name =
    /Hash mismatch for `([^`]+)`/i.exec(text)?.[1] ?? /Failed to [\w ]+`([^`]+)`/.exec(text)?.[1] ?? 'a package'
  return new BuildFailure(
    'assemble',
    `${name} is not the one that was locked: its hash is another. Somebody changed it where packages come from; find out who, or cut a release of a changed build${quoteLines(ran.lastLines)}`,
  )
}

/** The scripts that packs bring for this purpose, in the order of the packs. Throws BuildFailure. */
export async function runInstallScripts(step: Step, packs: readonly string[], installing: Installing): Promise<void> {
  const { folder, sources } = installing
  const scripts: { readonly pack: string; readonly text: string }[] = []
  for (const pack of packs) {
    const text = await readFile(join(packFolder(folder, pack), 'install.py'), 'utf8').catch(nullWhenMissing)
    if (text !== null) scripts.push({ pack, text })
  }
  if (scripts.length === 0) return
  const python = pythonOf(folder)
  // Many scripts call pip, which is no part of the lock; without it they would fail for no reason of theirs.
  if (scripts.some(({ text }) => /\bpip\b/.test(text)))
    await run(step, [python, '-m', 'ensurepip'], { cwd: step.scratch, isQuiet: true })
  const env = { ...activated(folder, step), ...pipEnvironment(sources), COMFYUI_PATH: join(folder, 'ComfyUI') }
  for (const { pack } of scripts) {
    step.say(`pack ${pack}: running its install script`)
    const ran = await run(step, [python, '-s', 'install.py'], { cwd: packFolder(folder, pack), env })
    if (ran.code !== 0) throw failureOf('assemble', `pack ${pack}: its install script failed; correct it`, ran)
    await mustBeLocked(step, installing, `the install script of pack ${pack}`)
  }
}

/** As if the environment had been activated in a shell. */
export function activated(folder: string, { shop }: Pick<Step, 'shop'>): Readonly<Record<string, string>> {
  return {
    VIRTUAL_ENV: join(folder, 'venv'),
    PATH: `${dirname(pythonOf(folder))}:${shop.env['PATH'] ?? ''}`,
    PYTHONNOUSERSITE: '1',
    PYTHONUNBUFFERED: '1',
  }
}

export function packFolder(folder: string, pack: string): string {
  return join(folder, 'ComfyUI', 'custom_nodes', pack)
}

async function mustBeLocked(step: Step, { uv, folder, wheels }: Installing, who: string): Promise<void> {
  const ran = await run(step, [uv, 'pip', 'freeze', '--no-config', '--python', pythonOf(folder)], {
    cwd: step.scratch,
    isQuiet: true,
  })
  if (ran.code !== 0) throw failureOf('assemble', 'what is installed cannot be read', ran)
  const installed = installedVersions(ran.stdout)
  const wrong = [...lockedVersions(wheels)].filter(([name, version]) =>
    installed.has(name) ? installed.get(name) !== version : !ran.stdout.includes(`${name} @`),
  )
  const [first] = wrong
  if (first === undefined) return
  const [name, version] = first
  throw new BuildFailure(
    'assemble',
    `${who} has ${name} ${installed.get(name) ?? 'missing'} where the lock says ${version}; packs must not change what others use: pin the package in pipDependencies, or correct the pack`,
  )
}

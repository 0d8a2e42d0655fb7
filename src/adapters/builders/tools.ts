/** The programs that make environments: the Pythons of this machine and uv, which is installed into the builder's folder if the system has none. */
import { constants } from 'node:fs'
import { access, mkdir, stat } from 'node:fs/promises'
import { delimiter, isAbsolute, join } from 'node:path'
import { takeLock } from '../../../lib/files/file-lock.ts'
import { nullWhenMissing } from '../../../lib/files/inside-folder.ts'
import { startKept } from '../../../lib/processes/kept-process.ts'
import { BuilderLacks } from '../../domain/environments/builder.ts'
import { type PackageSources, pipSources } from './package-sources.ts'
import { failureOf, run, type Step } from './workshop.ts'

export interface Python {
  readonly path: string
  /** Such as `3.12`. */
  readonly version: string
}

const ASK_MS = 20_000
const NAMES = ['python3', 'python3.14', 'python3.13', 'python3.12', 'python3.11', 'python3.10']
const ASK = 'import sys; print("%d.%d" % sys.version_info[:2], sys.executable)'

/** One for each version, in the order in which they were named, those of the operator first. */
export async function findPythons(given: readonly string[], env: NodeJS.ProcessEnv): Promise<readonly Python[]> {
  const found = new Map<string, Python>()
  for (const candidate of [...given, ...NAMES]) {
    const path = isAbsolute(candidate) ? candidate : await findOnPath(candidate, env)
    if (path === null) continue
    let printed = ''
    const asked = startKept([path, '-c', ASK], {
      cwd: '/',
      env,
      onLine(line, stream) {
        if (stream === 'stdout') printed = line
      },
    })
    const giveUp = setTimeout(() => void asked.stop(), ASK_MS)
    const { code } = await asked.ended
    clearTimeout(giveUp)
    await asked.stop()
    const [, version, executable] = /^(\d+\.\d+) (.+)$/.exec(printed) ?? []
    if (code === 0 && version !== undefined && executable !== undefined && !found.has(version))
      found.set(version, { path: executable, version })
  }
  return [...found.values()]
}

export async function findOnPath(name: string, env: NodeJS.ProcessEnv): Promise<string | null> {
  for (const folder of (env['PATH'] ?? '').split(delimiter).filter((each) => isAbsolute(each))) {
    const path = join(folder, process.platform === 'win32' ? `${name}.exe` : name)
    const isThere = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    )
    if (isThere) return path
  }
  return null
}

// Tried with the rest of the builder; a newer one may word its messages differently.
const UV_VERSION = '0.13.8'

/** `given`: the one that the operator names. Throws BuilderLacks. */
export async function findUv(
  step: Step,
  {
    given,
    pythons,
    sources,
  }: { readonly given: string | null; readonly pythons: readonly Python[]; readonly sources: PackageSources },
): Promise<string> {
  if (given !== null) {
    if ((await stat(given).catch(nullWhenMissing)) !== null) return given
    throw new BuilderLacks('start', 'the uv that the operator names is not there; the operator must correct its path')
  }
  const onPath = await findOnPath('uv', step.shop.env)
  if (onPath !== null) return onPath
  const folder = join(step.shop.root, 'tools', `uv-${UV_VERSION}`)
  const own = join(folder, process.platform === 'win32' ? 'Scripts/uv.exe' : 'bin/uv')
  await mkdir(join(step.shop.root, 'locks'), { recursive: true })
  using _lock = await takeLock(join(step.shop.root, 'locks', 'tools.lock'), step.signal)
  if ((await stat(own).catch(nullWhenMissing)) !== null) return own
  const [python] = pythons
  if (python === undefined)
    throw new BuilderLacks(
      'start',
      'the builder has no Python; the operator must install Python 3.10 or newer with its venv module',
    )
  step.say('installing uv for the builder')
  const made = await run(step, [python.path, '-m', 'venv', folder], { cwd: step.scratch, isTrusted: true })
  if (made.code !== 0)
    throw failureOf(
      'start',
      'the builder cannot make an environment for uv; the operator must install the venv module of Python, or uv',
      made,
    )
  const pip = join(folder, process.platform === 'win32' ? 'Scripts/python.exe' : 'bin/python')
  const options = ['--disable-pip-version-check', '--only-binary', ':all:', ...pipSources(sources)]
  const got = await run(step, [pip, '-m', 'pip', 'install', ...options, `uv==${UV_VERSION}`], {
    cwd: step.scratch,
    isTrusted: true,
  })
  if (got.code !== 0)
    throw failureOf('start', 'the builder has no uv and cannot install it; the operator must install uv', got)
  return own
}

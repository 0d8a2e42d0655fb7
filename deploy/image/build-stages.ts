/**
 * Does what a Dockerfile says without Docker: each stage that builds is this machine's own root with a layer of its own over it
 * (an overlay), and its RUN lines are run inside by chroot. The last stage begins empty; `base` fills in what its base image has.
 * Needs root and a mount namespace of its own: see check-image.ts. With `inFolders` the stages are plain folders instead, and RUN lines are
 * run beside the rest of the machine, with the given environment.
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, cpSync, existsSync, globSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import type { Instruction, Stage } from './dockerfile.ts'

export interface BuildOptions {
  /** The folder that is sent to the build. */
  readonly context: string
  readonly ignoreFile: string
  /** For roots and layers. Whoever made it removes it, once the namespace and with it every mount is gone. */
  readonly work: string
  readonly args: Readonly<Record<string, string>>
  readonly inFolders?: boolean
}

interface Built {
  readonly root: string
  workdir: string
}

/** Builds all stages; the folder that is the root of the last one. */
export function buildStages(stages: readonly Stage[], options: BuildOptions): string {
  const built = new Map<string, Built>()
  for (const stage of stages) {
    const isLast = stage === stages.at(-1)
    const isFolder = isLast || options.inFolders === true
    const root = isFolder ? openEmpty(stage.name, options.work) : openLayer(stage.name, options.work)
    const state = { root, workdir: '/' }
    built.set(stage.name, state)
    for (const instruction of stage.instructions) apply(instruction, state, { ...options, built })
  }
  return built.get(stages.at(-1)?.name ?? '')?.root ?? ''
}

type Around = BuildOptions & { readonly built: ReadonlyMap<string, Built> }

function apply(instruction: Instruction, state: Built, around: Around): void {
  const { word, text } = instruction
  if (word === 'WORKDIR') {
    state.workdir = text
    mkdirSync(path.join(state.root, text), { recursive: true })
  } else if (word === 'COPY') copy(instruction, state, around)
  else if (word === 'RUN') run(text, state, around)
}

function openEmpty(name: string, work: string): string {
  const root = path.join(work, name)
  mkdirSync(root)
  return root
}

function openLayer(name: string, work: string): string {
  const [upper, scratch, root] = ['upper', 'scratch', 'root'].map((part) => path.join(work, `${name}-${part}`))
  for (const folder of [upper, scratch, root]) mkdirSync(folder)
  command('mount', ['-t', 'overlay', 'overlay', '-o', `lowerdir=/,upperdir=${upper},workdir=${scratch}`, root])
  command('mount', ['-t', 'proc', 'proc', path.join(root, 'proc')])
  mountDevices(path.join(root, 'dev'))
  // Where a container's own files are mounts, the layer below shows empty ones.
  for (const file of ['/etc/resolv.conf', '/etc/hosts']) {
    if (existsSync(file)) command('mount', ['--bind', file, path.join(root, file)])
  }
  return root
}

const DEVICES = { null: 3, zero: 5, random: 8, urandom: 9 }

/** Devices of its own instead of the machine's: whatever happens in the layer must not reach those. */
export function mountDevices(folder: string): void {
  mkdirSync(folder, { recursive: true })
  command('mount', ['-t', 'tmpfs', '-o', 'mode=0755', 'tmpfs', folder])
  for (const [name, minor] of Object.entries(DEVICES)) {
    command('mknod', ['-m', '666', path.join(folder, name), 'c', '1', String(minor)])
  }
}

function run(text: string, { root, workdir }: Built, { args, inFolders }: BuildOptions): void {
  // The machine's own environment: how it reaches the network is part of that.
  const env = { ...process.env, ...args }
  if (inFolders) command('/bin/sh', ['-c', `cd ${path.join(root, workdir)} && ${text}`], env)
  else command('chroot', [root, '/bin/sh', '-c', `cd ${workdir} && ${text}`], env)
}

function copy({ flags, text }: Instruction, state: Built, around: Around): void {
  const names = text.split(/\s+/)
  const target = path.resolve('/', state.workdir, names.pop() ?? '')
  const isFolder = /\/$|^\.$/.test(text) || names.length > 1
  const from = flags['from'] === undefined ? around.context : around.built.get(flags['from'])?.root
  if (from === undefined) throw new Error(`COPY names the unknown stage ${flags['from']}`)
  const isWanted = flags['from'] === undefined ? openFilter(around) : () => true
  for (const name of names) {
    const source = path.join(from, name)
    // Docker copies what is in a folder, not the folder.
    const isContents = statSync(source).isDirectory() || !isFolder
    const destination = path.join(state.root, isContents ? target : path.join(target, path.basename(name)))
    mkdirSync(path.dirname(destination), { recursive: true })
    cpSync(source, destination, { recursive: true, verbatimSymlinks: true, filter: isWanted })
    if (flags['chmod'] !== undefined) chmodSync(destination, Number.parseInt(flags['chmod'], 8))
    const [uid, gid] = (flags['chown'] ?? '0:0').split(':').map(Number)
    if (!around.inFolders) chownSync(destination, uid, gid)
  }
}

/** What the ignore file leaves in: it names everything that may come along (`!name`), and patterns that must not. */
function openFilter({ context, ignoreFile }: BuildOptions): (file: string) => boolean {
  const lines = readFileSync(ignoreFile, 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#') && line !== '*')
  const allowed = lines
    .filter((line) => line.startsWith('!'))
    .flatMap((line) => globSync(line.slice(1), { cwd: context }))
  const refused = lines.filter((line) => !line.startsWith('!'))
  return (file) => {
    const name = path.relative(context, file)
    const isAbove = name === '' || allowed.some((start) => start.startsWith(`${name}/`))
    const isBelow = allowed.some((start) => name === start || name.startsWith(`${start}/`))
    return isAbove || (isBelow && !refused.some((pattern) => path.matchesGlob(name, pattern)))
  }
}

export function command(program: string, args: readonly string[], env?: NodeJS.ProcessEnv): string {
  const result = spawnSync(program, args, { encoding: 'utf8', env: env ?? process.env, maxBuffer: 2 ** 26 })
  if (result.status === 0) return result.stdout
  const why = result.error?.message ?? `exit ${result.status ?? result.signal}\n${result.stdout}\n${result.stderr}`
  throw new Error(`${program} ${args.join(' ')}: ${why}`)
}

/** The files of a release before anything is installed: ComfyUI and its packs, each with what the lock says about it. */
import { createWriteStream } from 'node:fs'
import { mkdir, readdir, readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { copyTree, hashFile, hashTree, treeBytes, walkTree } from '../../../../lib/files/file-tree.ts'
import { nullWhenMissing } from '../../../../lib/files/inside-folder.ts'
import { unzip, ZipError } from '../../../../lib/files/unzip.ts'
import type { Network } from '../../../../lib/outbound/network.ts'
import { BuildFailure, type BuildRequest } from '../../../domain/environments/builder.ts'
import type { DefinedPack } from '../../../domain/environments/definition.ts'
import type { LockedPack, LockedSource, ReleaseLock } from '../../../domain/environments/lock.ts'
import { run, type Step } from '../workshop.ts'
import { checkOut, judgeAddress, ownAddress, refuseLinksOut } from './git-source.ts'

/** Where ComfyUI comes from, as the operator says. */
export type ComfyuiSource =
  | { readonly kind: 'git'; readonly address: string }
  | { readonly kind: 'zip' | 'folder'; readonly path: string }

export interface SourceRules {
  readonly comfyui: ComfyuiSource
  /** Packs by name that need no source; null: there are none. */
  readonly packFolder: string | null
  readonly origins: readonly string[]
  readonly network: Network
}

// Large packs with their pictures have some thousands of files.
const PACK_LIMITS = { maxFiles: 50_000, maxBytes: 4 * 1024 ** 3 }
const PACK_NAME = /^(?!\.)[\w .+@-]{1,128}(?<![. ])$/

/** Into `<folder>/ComfyUI`. Throws BuildFailure. */
export async function bringComfyui(
  step: Step,
  request: BuildRequest,
  rules: SourceRules,
  folder: string,
): Promise<LockedSource> {
  const { definition, lock } = request
  const wanted = definition.baseComfyVersion
  if (wanted === undefined)
    throw new BuildFailure(
      'start',
      'the build says no version of ComfyUI; set baseComfyVersion and cut the release again',
    )
  const into = join(folder, 'ComfyUI')
  await mkdir(into, { recursive: true })
  const source = await bringByKind(step, { wanted, frozen: lock?.comfyui ?? null, into }, rules.comfyui)
  if ((await stat(join(into, 'main.py')).catch(nullWhenMissing)) === null)
    throw new BuildFailure(
      'freeze',
      'ComfyUI: what the builder has as ComfyUI has no main.py; the operator must correct its source',
    )
  mustBeFrozen('ComfyUI', lock?.comfyui ?? null, source)
  step.say(`ComfyUI ${wanted}${source.commit === null ? '' : ` is ${source.commit}`}`)
  return source
}

interface WantedComfyui {
  readonly wanted: string
  readonly frozen: LockedSource | null
  readonly into: string
}

async function bringByKind(
  step: Step,
  { wanted, frozen, into }: WantedComfyui,
  source: ComfyuiSource,
): Promise<LockedSource> {
  if (source.kind === 'git') {
    const address = ownAddress(source.address)
    const ref = frozen?.commit ?? wanted
    const commit = await checkOut(step, address, { what: 'ComfyUI', ref, into })
    return { wanted, commit, sha256: await hashTree(into) }
  }
  if (source.kind === 'zip') {
    await unpack('ComfyUI', source.path, into, (names) => !names.includes('main.py'))
    await mustBeVersion(into, wanted)
    return { wanted, commit: null, sha256: await hashFile(source.path) }
  }
  if ((await stat(join(source.path, 'main.py')).catch(nullWhenMissing)) === null)
    throw new BuildFailure(
      'start',
      'the folder that the builder has as ComfyUI holds no main.py; the operator must correct it',
    )
  await copyTree(source.path, into, isComfyuiItself)
  await mustBeVersion(into, wanted)
  const commit = await headOf(step, source.path)
  if (commit !== null && /^[0-9a-f]{40}$/.test(wanted) && commit !== wanted)
    throw new BuildFailure(
      'freeze',
      `ComfyUI: the builder has the commit ${commit}, and the build wants ${wanted}; change baseComfyVersion, or have the operator provide it`,
    )
  return { wanted, commit, sha256: await hashTree(into) }
}

const NOT_COMFYUI: ReadonlySet<string> = new Set(['output', 'input', 'temp', 'user', 'venv', '.venv', '.git'])

/** Of a ComfyUI that somebody uses, the program without what was put into it. */
function isComfyuiItself(path: string, kind: 'file' | 'folder' | 'link'): boolean {
  const [top, next, ...rest] = path.split('/')
  if (top === undefined || NOT_COMFYUI.has(top) || path.endsWith('__pycache__')) return false
  if (top === 'custom_nodes') return next === undefined || (kind === 'file' && rest.length === 0)
  return top !== 'models' || kind === 'folder' || next === 'configs'
}

async function headOf(step: Step, folder: string): Promise<string | null> {
  if ((await stat(join(folder, '.git')).catch(nullWhenMissing)) === null) return null
  const ran = await run(step, ['git', '-c', 'safe.directory=*', '-C', folder, 'rev-parse', 'HEAD'], {
    cwd: step.scratch,
    isQuiet: true,
    isTrusted: true,
  })
  const commit = ran.stdout.trim()
  return ran.code === 0 && /^[0-9a-f]{40}$/.test(commit) ? commit : null
}

/** ComfyUI says its version in a file of its own; where it does not, or where a branch is wanted, there is nothing to compare. */
async function mustBeVersion(folder: string, wanted: string): Promise<void> {
  const text = await readFile(join(folder, 'comfyui_version.py'), 'utf8').catch(nullWhenMissing)
  const has = /__version__\s*=\s*["']([\w.+-]+)["']/.exec(text ?? '')?.[1]
  const version = /^v?(\d+\.\d+\.\d+)$/.exec(wanted)?.[1]
  if (has === undefined || version === undefined || has === version) return
  throw new BuildFailure(
    'freeze',
    `ComfyUI: the builder has version ${has} alone, and the build wants ${wanted}; set baseComfyVersion to v${has}, or have the operator provide ${wanted}`,
  )
}

/** What was frozen must come again. */
function mustBeFrozen(what: string, frozen: Pick<LockedSource, 'sha256'> | null, found: LockedSource): void {
  if (frozen === null || frozen.sha256 === found.sha256) return
  throw new BuildFailure(
    'freeze',
    `${what}: its content has changed since the release was frozen (sha256 ${frozen.sha256} then, ${found.sha256} now); cut a new release of a changed build`,
  )
}

async function unpack(
  what: string,
  path: string,
  into: string,
  unwrap: (names: readonly string[]) => boolean,
): Promise<void> {
  try {
    await unzip(path, into, { limits: PACK_LIMITS, unwrap })
  } catch (error) {
    if (error instanceof ZipError)
      throw new BuildFailure('freeze', `${what}: its zip is not taken: ${error.message}; pack it anew`)
    throw error
  }
}

/** Into `<folder>/ComfyUI/custom_nodes`. Throws BuildFailure. */
export async function bringPacks(
  step: Step,
  request: BuildRequest,
  rules: SourceRules,
  folder: string,
): Promise<readonly LockedPack[]> {
  const packs: LockedPack[] = []
  const base = join(folder, 'ComfyUI', 'custom_nodes')
  await mkdir(base, { recursive: true })
  for (const pack of request.definition.customNodes ?? []) {
    const what = `pack ${pack.name}`
    if (!PACK_NAME.test(pack.name))
      throw new BuildFailure('start', `${what}: its name cannot be the name of a folder; rename it`)
    const taken = new Set((await readdir(base)).map((name) => name.toLowerCase()))
    if (taken.has(pack.name.toLowerCase()))
      throw new BuildFailure('start', `${what}: two packs have this name; rename or remove one`)
    const into = join(base, pack.name)
    await mkdir(into)
    const frozen = request.lock?.packs.find(({ name }) => name === pack.name) ?? null
    const found = await bringPack(step, { pack, what, into, frozen, request }, rules)
    mustBeFrozen(what, frozen, found)
    await mustBeSmall(what, into)
    step.say(`${what} is ${found.commit ?? `sha256 ${found.sha256}`} (${found.from})`)
    packs.push({ ...found, name: pack.name })
  }
  return packs
}

interface PackWish {
  readonly pack: DefinedPack
  readonly what: string
  readonly into: string
  readonly frozen: ReleaseLock['packs'][number] | null
  readonly request: BuildRequest
}

async function bringPack(
  step: Step,
  { pack, what, into, frozen, request }: PackWish,
  rules: SourceRules,
): Promise<Omit<LockedPack, 'name'>> {
  if (pack.blobId !== undefined) {
    const zip = join(step.scratch, 'pack.zip')
    await pipeline(await request.openBlob(pack.blobId, 'node_zip'), createWriteStream(zip), { signal: step.signal })
    const sha256 = await hashFile(zip)
    await unpack(what, zip, into, (names) => !names.includes('__init__.py'))
    await rm(zip)
    return { wanted: pack.blobId, commit: null, sha256, from: 'blob' }
  }
  if (pack.repository !== undefined) {
    const address = await judgeAddress(pack.repository, { ...rules, what })
    const wanted = pack.commit ?? pack.gitRef ?? null
    const commit = await checkOut(step, address, { what, ref: frozen?.commit ?? wanted, into })
    return { wanted: wanted ?? 'HEAD', commit, sha256: await hashTree(into), from: 'git' }
  }
  if (pack.registryVersion !== undefined) {
    throw new BuildFailure(
      'freeze',
      `${what}: this builder does not fetch from the registry of packs; name its repository with a commit, or upload it as a zip`,
    )
  }
  if (rules.packFolder !== null) {
    const from = join(rules.packFolder, pack.name)
    if ((await stat(from).catch(nullWhenMissing))?.isDirectory() !== true)
      throw new BuildFailure('freeze', `${what}: the builder's folder of packs has none of this name`)
    await copyTree(from, into, (path) => path !== '.git' && !path.endsWith('__pycache__'))
    await refuseLinksOut(into, what)
    return { wanted: pack.name, commit: null, sha256: await hashTree(into), from: 'folder' }
  }
  throw new BuildFailure('start', `${what}: it has no source; give a repository with a commit, or upload it as a zip`)
}

async function mustBeSmall(what: string, folder: string): Promise<void> {
  let files = 0
  for await (const { kind } of walkTree(folder)) files += kind === 'file' ? 1 : 0
  const bytes = await treeBytes(folder)
  if (files === 0) throw new BuildFailure('freeze', `${what}: it has no files`)
  if (files > PACK_LIMITS.maxFiles || bytes > PACK_LIMITS.maxBytes)
    throw new BuildFailure(
      'freeze',
      `${what}: it has ${files} files of ${bytes} bytes; at most ${PACK_LIMITS.maxFiles} files of ${PACK_LIMITS.maxBytes} bytes are taken. Put models and samples elsewhere`,
    )
}

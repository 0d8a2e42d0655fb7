/** The ComfyUI of a release before anything is installed, with what the lock says about it. */
import { mkdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { copyTree, hashFile, hashTree } from '../../../../lib/files/file-tree.ts'
import { nullWhenMissing } from '../../../../lib/files/inside-folder.ts'
import { unzip, ZipError } from '../../../../lib/files/unzip.ts'
import { BuilderLacks, BuildFailure, type BuildRequest } from '../../../domain/environments/builder.ts'
import type { LockedSource } from '../../../domain/environments/lock.ts'
import type { OutboundRules } from '../models/fetch-range.ts'
import { run, type Step } from '../workshop.ts'
import { checkOut, ownAddress } from './git-source.ts'
import type { OpenedRegistry } from './registry.ts'

/** Where ComfyUI comes from, as the operator says. */
export type ComfyuiSource =
  | { readonly kind: 'git'; readonly address: string }
  | { readonly kind: 'zip' | 'folder'; readonly path: string }

export interface SourceRules extends OutboundRules {
  readonly comfyui: ComfyuiSource
  /** Packs by name that need no source; null: there are none. */
  readonly packFolder: string | null
  /** null: packs by id and version are not to be had. */
  readonly registry: OpenedRegistry | null
}

// Large packs with their pictures have some thousands of files.
export const PACK_LIMITS = { maxFiles: 50_000, maxBytes: 4 * 1024 ** 3 }

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
    throw new BuilderLacks(
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
    throw new BuilderLacks(
      'start',
      'the folder that the builder has as ComfyUI holds no main.py; the operator must correct it',
    )
  await copyTree(source.path, into, isComfyuiItself)
  await mustBeVersion(into, wanted)
  const commit = await headOf(step, source.path)
  if (commit !== null && /^[0-9a-f]{40}$/.test(wanted) && commit !== wanted)
    throw new BuilderLacks(
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
  throw new BuilderLacks(
    'freeze',
    `ComfyUI: the builder has version ${has} alone, and the build wants ${wanted}; set baseComfyVersion to v${has}, or have the operator provide ${wanted}`,
  )
}

/** What was frozen must come again. */
export function mustBeFrozen(what: string, frozen: Pick<LockedSource, 'sha256'> | null, found: LockedSource): void {
  if (frozen === null || frozen.sha256 === found.sha256) return
  throw new BuildFailure(
    'freeze',
    `${what}: its content has changed since the release was frozen (sha256 ${frozen.sha256} then, ${found.sha256} now); cut a new release of a changed build`,
  )
}

export async function unpack(
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

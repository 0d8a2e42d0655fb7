/** What a ComfyUI on this machine consists of, as the definition of a build: its version, its packs, its models. Nothing is sent. */
import { execFile } from 'node:child_process'
import { createWriteStream, existsSync } from 'node:fs'
import { open, readdir, readFile, realpath, stat } from 'node:fs/promises'
import path from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { hashFile, walkTree } from '../../../lib/files/file-tree.ts'
import { nullWhenMissing } from '../../../lib/files/inside-folder.ts'
import { type ZipFile, zipStream } from '../../../lib/files/zip-stream.ts'
import { toRepository } from '../../../lib/text/repository-address.ts'
import { CommandError, EXIT } from '../terminal.ts'
import { isFolder, type SpecDefinition, type SpecModel, type SpecPack } from './spec-file.ts'

const MODEL_FILE = /\.(?:safetensors|sft|gguf|ckpt|pt|pth|bin)$/i
const NO_MODELS: ReadonlySet<string> = new Set(['configs', 'custom_nodes'])
// A link that leads back up would be walked for ever.
const MAX_DEPTH = 8
const GIT_WITHIN_MS = 30_000

interface Scan {
  readonly definition: SpecDefinition
  /** What was left out, and why. */
  readonly remarks: readonly string[]
}

/** `say` is told what takes long. */
export async function scanComfyui(folder: string, say: (line: string) => void): Promise<Scan> {
  const inner = path.join(folder, 'ComfyUI')
  const base = isFolder(path.join(folder, 'models')) || !isFolder(inner) ? folder : inner
  if (!['models', 'custom_nodes', 'main.py'].some((name) => existsSync(path.join(base, name))))
    throw new CommandError(`${folder} is no ComfyUI: it has neither models nor custom_nodes`, EXIT.usage)
  const remarks: string[] = []
  const version = await readComfyVersion(base)
  const models = await scanModels(base, folder, { say, remarks })
  const customNodes = await scanPacks(base, folder, remarks)
  return { definition: { ...(version !== null && { baseComfyVersion: version }), models, customNodes }, remarks }
}

/** The commit that is checked out, where git knows it; else the version that ComfyUI says. */
async function readComfyVersion(base: string): Promise<string | null> {
  if ((await stat(path.join(base, 'main.py')).catch(nullWhenMissing)) === null) return null
  const commit = (await stat(path.join(base, '.git')).catch(nullWhenMissing)) && (await git(base, 'rev-parse', 'HEAD'))
  if (commit !== null && /^[0-9a-f]{40}$/.test(commit)) return commit
  const text = await readFile(path.join(base, 'comfyui_version.py'), 'utf8').catch(nullWhenMissing)
  const version = /__version__\s*=\s*["'](\d+\.\d+\.\d+)["']/.exec(text ?? '')?.[1]
  return version === undefined ? null : `v${version}`
}

interface Telling {
  readonly say: (line: string) => void
  readonly remarks: string[]
}

async function scanModels(base: string, from: string, { say, remarks }: Telling): Promise<SpecModel[]> {
  const root = path.join(base, 'models')
  const found: SpecModel[] = []
  async function walk(type: string, depth: number): Promise<void> {
    const names = (await readdir(path.join(root, type)).catch(nullWhenMissing)) ?? []
    for (const name of names.sort()) {
      if (name.startsWith('.')) continue
      const inside = type === '' ? name : `${type}/${name}`
      const file = path.join(root, inside)
      // Links are followed: models often lie on another disk.
      const state = await stat(file).catch(nullWhenMissing)
      if (state?.isDirectory() === true && depth < MAX_DEPTH && !(depth === 0 && NO_MODELS.has(name)))
        await walk(inside, depth + 1)
      if (state?.isFile() !== true || !MODEL_FILE.test(name)) continue
      if (type === '') {
        remarks.push(`models/${name} lies in no folder of models, and is left out`)
        continue
      }
      say(`reading models/${inside} (${(state.size / 1e9).toFixed(2)} GB)`)
      const local = { source: 'local', localPath: path.relative(from, file), sizeBytes: state.size } as const
      found.push({ type, filename: name, sha256: await hashFile(file), ...local })
    }
  }
  await walk('', 0)
  return found
}

async function scanPacks(base: string, from: string, remarks: string[]): Promise<SpecPack[]> {
  const root = path.join(base, 'custom_nodes')
  const packs: SpecPack[] = []
  for (const name of ((await readdir(root).catch(nullWhenMissing)) ?? []).sort()) {
    if (name.startsWith('.') || name.startsWith('__') || name.endsWith('.disabled')) continue
    const folder = path.join(root, name)
    if (isFolder(folder)) packs.push(await readPack(folder, from, remarks))
    else if (name.endsWith('.py') && name !== 'websocket_image_save.py')
      remarks.push(`custom_nodes/${name} is a single file, and is left out: put it into a folder as __init__.py`)
  }
  return packs
}

async function readPack(folder: string, from: string, remarks: string[]): Promise<SpecPack> {
  const name = path.basename(folder)
  const localPath = path.relative(from, folder)
  const local: SpecPack = { name, source: 'local', localPath }
  // A pack inside somebody else's checkout has no history of its own.
  if ((await stat(path.join(folder, '.git')).catch(nullWhenMissing)) === null) return local
  const [origin, commit, changes] = [
    await git(folder, 'config', '--get', 'remote.origin.url'),
    await git(folder, 'rev-parse', 'HEAD'),
    await git(folder, 'status', '--porcelain', '--untracked-files=no'),
  ]
  const repository = toRepository(origin ?? '')
  if (repository === null || commit === null) return local
  if (changes !== '') {
    remarks.push(`custom_nodes/${name} has changes that are not committed: it is uploaded as it lies there`)
    return local
  }
  return { name, source: 'git', localPath, repository, commit }
}

/** null: git is not there, or the folder is none of its own. */
async function git(folder: string, ...args: string[]): Promise<string | null> {
  // What a checkout configures as a program is not run.
  const words = ['-c', 'core.fsmonitor=false', '-C', folder, ...args]
  return promisify(execFile)('git', words, { timeout: GIT_WITHIN_MS }).then(
    ({ stdout }) => stdout.trim(),
    () => null,
  )
}

// So that the same pack has the same bytes, and need not be sent again.
const PACKED_AT = new Date(Date.UTC(1980, 0, 1))

/** The files of a pack as one zip, the same bytes for the same files; links are left out. */
export async function zipPack(folder: string, zip: string): Promise<void> {
  const files: ZipFile[] = []
  const root = await realpath(folder)
  const isPart = (inside: string) => !/(?:^|\/)(?:\.git|__pycache__)$|\.pyc$/.test(inside)
  for await (const { path: name, kind } of walkTree(root, isPart)) {
    if (kind !== 'file') continue
    const file = path.join(root, name)
    files.push({
      ...{ name, sizeBytes: (await stat(file)).size, modifiedAt: PACKED_AT },
      open: async () => (await open(file)).createReadStream(),
    })
  }
  if (files.length === 0) throw new CommandError(`${folder} has no files`, EXIT.usage)
  await pipeline(Readable.from(zipStream(files), { objectMode: false }), createWriteStream(zip))
}

/** The packs of a release before anything is installed, each with what the lock says about it. */
import { createWriteStream } from 'node:fs'
import { mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { copyTree, hashFile, hashTree, treeBytes, walkTree } from '../../../../lib/files/file-tree.ts'
import { nullWhenMissing } from '../../../../lib/files/inside-folder.ts'
import { BuilderLacks, BuildFailure, type BuildRequest } from '../../../domain/environments/builder.ts'
import type { DefinedPack } from '../../../domain/environments/definition.ts'
import type { LockedPack, ReleaseLock } from '../../../domain/environments/lock.ts'
import type { Step } from '../workshop.ts'
import { checkOut, judgeAddress, refuseLinksOut } from './git-source.ts'
import { mustBeFrozen, PACK_LIMITS, type SourceRules, unpack } from './sources.ts'

const PACK_NAME = /^(?!\.)[\w .+@-]{1,128}(?<![. ])$/

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

type BroughtPack = Omit<LockedPack, 'name'>

function bringPack(step: Step, wish: PackWish, rules: SourceRules): Promise<BroughtPack> {
  const { blobId, repository, registryVersion } = wish.pack
  if (blobId !== undefined) return fromBlob(step, wish, blobId)
  if (repository !== undefined) return fromGit(step, wish, rules)
  if (registryVersion !== undefined) return fromRegistry(step, wish, rules.registry)
  return fromFolder(wish, rules.packFolder)
}

async function fromBlob(step: Step, { what, into, request }: PackWish, blobId: string): Promise<BroughtPack> {
  const zip = join(step.scratch, 'pack.zip')
  await pipeline(await request.openBlob(blobId, 'node_zip'), createWriteStream(zip), { signal: step.signal })
  return { wanted: blobId, commit: null, sha256: await unpackOwn(what, zip, into), from: 'blob' }
}

async function fromGit(step: Step, { pack, what, into, frozen }: PackWish, rules: SourceRules): Promise<BroughtPack> {
  const address = await judgeAddress(pack.repository ?? '', { ...rules, what })
  const wanted = pack.commit ?? pack.gitRef ?? null
  const commit = await checkOut(step, address, { what, ref: frozen?.commit ?? wanted, into })
  return { wanted: wanted ?? 'HEAD', commit, sha256: await hashTree(into), from: 'git' }
}

const OTHERWISE = 'name its repository with a commit, or upload it as a zip'

async function fromRegistry(
  step: Step,
  { pack, what, into }: PackWish,
  registry: SourceRules['registry'],
): Promise<BroughtPack> {
  const { id = '', registryVersion = '' } = pack
  const wanted = `${id}@${registryVersion}`
  if (registry === null)
    throw new BuilderLacks(
      'freeze',
      `${what}: this builder has no registry of packs to get ${wanted} from; ${OTHERWISE}, or have the operator name one in "registry" of builder`,
    )
  const told = (problem: string, remedy: string) => new BuildFailure('freeze', `${what}: ${problem}; ${remedy}`)
  const away = (error: unknown): never => {
    step.signal.throwIfAborted()
    if (error instanceof Error && 'code' in error) throw error
    throw told(String((error as Error).message), `cut the release again when it answers, or ${OTHERWISE}`)
  }
  const found = await registry.find(id, registryVersion).catch(away)
  if (found === null) throw told(`${registry.name} has no ${wanted}`, `take another version, or ${OTHERWISE}`)
  if (found.state === 'withdrawn')
    throw told(`${registry.name} has withdrawn ${wanted}, as unsafe or by mistake`, 'take another version')
  step.say(`${what}: taking ${wanted} from ${registry.name}`)
  const zip = join(step.scratch, 'pack.zip')
  await registry.download(found, zip, step.signal).catch(away)
  return { wanted, commit: null, sha256: await unpackOwn(what, zip, into), from: 'registry' }
}

/** By its name alone: a folder, or a zip. */
async function fromFolder({ pack, what, into }: PackWish, folder: string | null): Promise<BroughtPack> {
  const { name } = pack
  if (folder === null)
    throw new BuilderLacks(
      'freeze',
      `${what}: it names no source, and this builder has no folder of packs; ${OTHERWISE}, or have the operator name a folder in "packs" of builder`,
    )
  const known = (await readdir(folder).catch(nullWhenMissing)) ?? []
  const isFolder = (await stat(join(folder, name)).catch(nullWhenMissing))?.isDirectory() === true
  if (isFolder) {
    await copyTree(join(folder, name), into, (path) => path !== '.git' && !path.endsWith('__pycache__'))
    await refuseLinksOut(into, what)
    return { wanted: name, commit: null, sha256: await hashTree(into), from: 'folder' }
  }
  if (known.includes(`${name}.zip`)) {
    const sha256 = await unpackZip(what, join(folder, `${name}.zip`), into)
    return { wanted: name, commit: null, sha256, from: 'folder' }
  }
  const names = known.map((each) => each.replace(/\.zip$/, '')).filter((each) => PACK_NAME.test(each))
  const has = `${names.slice(0, 20).join(', ') || 'nothing'}${names.length > 20 ? ' and others' : ''}`
  throw new BuilderLacks(
    'freeze',
    `${what}: it names no source, and the builder's folder of packs, which has ${has}, has none of this name; ${OTHERWISE}`,
  )
}

/** A zip of the build's own, which is gone then. Resolves with its hash. */
async function unpackOwn(what: string, zip: string, into: string): Promise<string> {
  const sha256 = await unpackZip(what, zip, into)
  await rm(zip)
  return sha256
}

async function unpackZip(what: string, zip: string, into: string): Promise<string> {
  const sha256 = await hashFile(zip)
  await unpack(what, zip, into, (names) => !names.includes('__init__.py'))
  return sha256
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

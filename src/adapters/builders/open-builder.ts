/**
 * The builder of this machine. A release is frozen (every source by its content, every package by its hashes), put together from
 * that alone, started once, and then published. What was fetched on the way is kept, so a build that was interrupted starts clean
 * and is soon where it was.
 */
import { lchown, mkdir, readdir, realpath, statfs, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { takeLock, tryLock } from '../../../lib/files/file-lock.ts'
import { hashTree, treeBytes, walkTree } from '../../../lib/files/file-tree.ts'
import { nullWhenMissing } from '../../../lib/files/inside-folder.ts'
import type { Network } from '../../../lib/outbound/network.ts'
import type { SystemUser } from '../../../lib/processes/kept-process.ts'
import { sleep } from '../../../lib/waiting/sleep.ts'
import type { WeightRules } from '../../domain/engine/weights/weight-rules.ts'
import {
  type Builder,
  BuilderLacks,
  BuildFailure,
  type BuildPhase,
  type BuildRequest,
  type BuiltRelease,
  type TidyBefore,
} from '../../domain/environments/builder.ts'
import { type BuildTarget, targetText } from '../../domain/environments/definition.ts'
import { whyTooMuch } from '../../domain/environments/disk-quota.ts'
import type { LockedModel, ReleaseLock } from '../../domain/environments/lock.ts'
import { chooseBase, listBaseImages } from './base-images.ts'
import { testImports } from './import-test.ts'
import { type Installing, installPackages, runInstallScripts } from './install-packages.ts'
import { openRangeFetcher } from './models/fetch-range.ts'
import { ModelStore } from './models/model-store.ts'
import type { PackageSources } from './package-sources.ts'
import { ReleaseFolders, remove } from './release-folders.ts'
import { readAsking, readPins, resolvePackages } from './resolve-packages.ts'
import { bringPacks } from './sources/packs.ts'
import { type OpenedRegistry, openRegistry, type RegistrySource } from './sources/registry.ts'
import { bringComfyui, type ComfyuiSource, type SourceRules } from './sources/sources.ts'
import { findPythons, findUv, type Python } from './tools.ts'
import { createRedactor, DiskFull, fullDisk, homeOf, run, type Step, toFailure, type Workshop } from './workshop.ts'

export interface BuilderOptions {
  readonly directory: string
  /** Of this machine. */
  readonly targets: readonly BuildTarget[]
  readonly comfyui: ComfyuiSource
  readonly packFolder: string | null
  /** Of models that name no source. */
  readonly modelFolders: readonly string[]
  /** null: packs by id and version are not to be had. */
  readonly registry: RegistrySource | null
  readonly packages: PackageSources
  /** The newest CUDA that the driver here runs, by its first number; null: not known. */
  readonly cuda: number | null
  /** Paths or names; those on the path are found by themselves. */
  readonly pythons: readonly string[]
  readonly uv: string | null
  /** Origins of the operator's own, which may be plain http and lie in a private network. */
  readonly origins: readonly string[]
  readonly headers: ReadonlyMap<string, Readonly<Record<string, string>>>
  readonly network: Network
  readonly rules: WeightRules
  /** Of everything in the folder. */
  readonly maxBytes: number
  readonly maxModelBytes: number
  /** What the disk keeps free. */
  readonly spareBytes: number
  readonly startWithinMs: number
  readonly user: SystemUser | null
  readonly env: NodeJS.ProcessEnv
  readonly version: string
}

interface Parts {
  readonly options: BuilderOptions
  readonly shop: Workshop
  readonly folders: ReleaseFolders
  readonly models: ModelStore
  readonly registry: OpenedRegistry | null
  readonly pythons: readonly Python[]
  readonly builder: Pick<Builder, 'targets' | 'baseImages'>
}

export async function openBuilder(options: BuilderOptions): Promise<Builder & AsyncDisposable> {
  await mkdir(options.directory, { recursive: true })
  const root = await realpath(options.directory)
  const shop: Workshop = {
    root,
    env: { ...options.env, ...FIXED, UV_CACHE_DIR: join(root, 'cache') },
    user: options.user,
  }
  for (const folder of [homeOf(shop), join(root, 'cache'), join(root, 'scratch')]) {
    await mkdir(folder, { recursive: true })
    if (options.user !== null) await lchown(folder, options.user.uid, options.user.gid)
  }
  await mkdir(join(root, 'locks'), { recursive: true })
  const pythons = await findPythons(options.pythons, shop.env)
  const fetcher = openRangeFetcher(options)
  const { rules, maxModelBytes: maxBytes } = options
  const folders = new ReleaseFolders(root)
  const models = new ModelStore(root, {
    fetchRange: fetcher.fetchRange,
    folders: options.modelFolders,
    rules,
    maxBytes,
  })
  const { targets, cuda } = options
  const builder = {
    targets,
    baseImages: await listBaseImages({ pythons, targets, torch: options.packages.torch, cuda }),
  }
  const registry = options.registry === null ? null : openRegistry(options.registry, options)
  const parts: Parts = { options, shop, folders, models, registry, pythons, builder }
  return {
    ...builder,
    build: (request) => build(parts, request),
    async find(releaseId, target) {
      const found = await folders.find(releaseId, target)
      return found === null ? null : { ...found, user: options.user }
    },
    keepOnly: (isKept, before) => keepOnly(parts, isKept, before),
    async [Symbol.asyncDispose]() {
      await fetcher[Symbol.asyncDispose]()
      await registry?.[Symbol.asyncDispose]()
    },
  }
}

// Copies: a file that shared its bytes with the cache would, once a script of one release changes it, be changed for all.
const FIXED = {
  ...{ UV_NO_CONFIG: '1', UV_PYTHON_DOWNLOADS: 'never', UV_NO_PROGRESS: '1', NO_COLOR: '1', UV_LINK_MODE: 'copy' },
  // Folders of the account that runs the service are none of a build's business.
  ...{
    XDG_CACHE_HOME: undefined,
    XDG_CONFIG_HOME: undefined,
    XDG_DATA_HOME: undefined,
    VIRTUAL_ENV: undefined,
    PYTHONPATH: undefined,
    PYTHONHOME: undefined,
  },
}

/** Held shared by every build, so that models are only removed while none is under way. */
const MODELS_LOCK = 'models'
const WATCH_EVERY_MS = 2_000

async function build(parts: Parts, request: BuildRequest): Promise<BuiltRelease> {
  const { options, shop, folders } = parts
  const { releaseId, target } = request
  if (!options.targets.some(({ os, gpu }) => os === target.os && gpu === target.gpu))
    throw new BuildFailure(
      'start',
      `this builder cannot make ${targetText(target)}; it makes ${options.targets.map(targetText).join(', ')}`,
    )
  const redact = createRedactor([...options.headers.values()].flatMap((headers) => Object.values(headers)))
  using _release = await folders.begin(releaseId, target, request.signal)
  await makeRoom(parts)
  using _models = await takeLock(folders.lockOf(MODELS_LOCK), request.signal, 'shared')
  const before = await folders.read(releaseId, target)
  if (before !== null && (await folders.find(releaseId, target)) !== null && isSame(request.lock, before.lock)) {
    request.say('this release is there already')
    const { build: _build, ...built } = before
    return built
  }
  let phase: BuildPhase = 'start'
  const say = (line: string) => request.say(redact(line))
  const begin = (next: BuildPhase) => {
    phase = next
    say(`== ${next}`)
  }
  const made = await folders.create(releaseId, target).catch((error: unknown) => {
    throw toFailure('start', error)
  })
  const scratch = join(shop.root, 'scratch', made.build)
  const full = new AbortController()
  const signal = AbortSignal.any([request.signal, full.signal])
  const watching = watchDisk(parts, full)
  const step: Step = { shop, scratch, signal, say, give: (folder) => give(folder, shop.user) }
  try {
    await mkdir(scratch, { recursive: true })
    await step.give(scratch)
    const finished = await make(parts, { request: { ...request, say, signal }, step, begin, folder: made.folder })
    await folders.publish(releaseId, target, { ...finished, build: made.build })
    say('== done')
    return finished
  } catch (error) {
    await folders.discard(releaseId, target, made.build)
    request.signal.throwIfAborted()
    if (full.signal.aborted) throw fullDisk(phase)
    const failure = toFailure(phase, error)
    throw failure instanceof BuildFailure ? redacted(failure, redact) : failure
  } finally {
    watching.abort()
    await remove(scratch)
  }
}

function redacted(failure: BuildFailure, redact: (line: string) => string): BuildFailure {
  const Failure = failure instanceof BuilderLacks ? BuilderLacks : BuildFailure
  return new Failure(failure.phase, failure.problem.split('\n').map(redact).join('\n'))
}

function isSame(wanted: ReleaseLock | null, made: ReleaseLock): boolean {
  return wanted === null || wanted.torch.variant !== made.torch.variant || wanted.wheels === made.wheels
}

interface Making {
  readonly request: BuildRequest
  readonly step: Step
  begin(phase: BuildPhase): void
  readonly folder: string
}

async function make(parts: Parts, { request, step, begin, folder }: Making): Promise<BuiltRelease> {
  const { options, pythons, builder, models } = parts
  const { definition, target, lock, quota } = request
  const mustAfford = (phase: BuildPhase, sizeBytes: number) => {
    const problem = quota === undefined ? null : whyTooMuch(quota, { sizeBytes, models: locked })
    if (problem !== null) throw new BuildFailure(phase, problem)
  }
  const locked: LockedModel[] = []
  begin('start')
  const { baseImage } = definition
  const base = chooseBase({ baseImage, lock }, target, { images: builder.baseImages, pythons })
  const uv = await findUv(step, { given: options.uv, pythons, sources: options.packages })
  await mustFit(parts, step, 'start', uv)
  mustAfford('start', 0)
  begin('freeze')
  const rules: SourceRules = { ...options, registry: parts.registry }
  const comfyui = await bringComfyui(step, request, rules, folder)
  const packs = await bringPacks(step, request, rules, folder)
  const names = packs.map(({ name }) => name)
  const isFrozen = lock !== null && lock.torch.variant === base.torch && lock.python === base.python.version
  const wheels = isFrozen ? lock.wheels : await freezePackages(parts, { request, step, folder, uv, base, names })
  const wanted = definition.models ?? []
  const tell = createStaging(wanted.length, request)
  for (const model of wanted) {
    const frozen = lock?.models.find(({ type, filename }) => type === model.type && filename === model.filename) ?? null
    tell(locked, model.filename, 0)
    const onProgress = (bytes: number) => tell(locked, model.filename, bytes)
    const openBlob = (id: string) => request.openBlob(id, 'model')
    locked.push(await models.bring(step, { model, frozen, openBlob, onProgress }))
    mustAfford('freeze', 0)
  }
  tell(locked, null, 0)
  await mustFit(parts, step, 'freeze')
  const version = /^torch==([^\s\\;]+)/m.exec(wheels)?.[1] ?? null
  const torch = { variant: base.torch, version }
  const made: ReleaseLock = { comfyui, python: base.python.version, torch, packs, wheels, models: locked }
  await request.note(made)
  begin('assemble')
  await linkModels(models, locked, folder)
  await step.give(folder)
  const installing: Installing = { uv, base, sources: options.packages, folder, wheels }
  await installPackages(step, installing)
  await mustFit(parts, step, 'assemble')
  mustAfford('assemble', await treeBytes(folder, isPart))
  await runInstallScripts(step, names, installing)
  begin('validate')
  const classes = await testImports(step, { folder, packs: names, target, startWithinMs: options.startWithinMs })
  begin('hash')
  await mustFit(parts, step, 'hash')
  const sizeBytes = await treeBytes(folder, isPart)
  mustAfford('hash', sizeBytes)
  return { lock: made, archiveSha256: await hashTree(folder, isPart), sizeBytes, classes }
}

function createStaging(modelsTotal: number, { lock, stage }: BuildRequest) {
  const bytesTotal = lock === null ? null : sum(lock.models)
  return (here: readonly LockedModel[], currentModel: string | null, bytes: number) =>
    stage?.({ modelsDone: here.length, modelsTotal, bytesDone: sum(here) + bytes, bytesTotal, currentModel })
}

function sum(models: readonly LockedModel[]): number {
  return models.reduce((bytes, { sizeBytes }) => bytes + sizeBytes, 0)
}

/** Of what the release is hashed by, and what it is said to take. */
function isPart(path: string): boolean {
  return path !== 'ComfyUI/models' && !path.endsWith('__pycache__')
}

interface Freezing extends Pick<Making, 'request' | 'step' | 'folder'>, Pick<Installing, 'uv' | 'base'> {
  readonly names: readonly string[]
}

async function freezePackages(
  { options }: Parts,
  { request, step, folder, uv, base, names }: Freezing,
): Promise<string> {
  const comfyui = await readAsking(step, 'ComfyUI', join(folder, 'ComfyUI'))
  const asking = []
  for (const name of names) asking.push(await readAsking(step, name, join(folder, 'ComfyUI', 'custom_nodes', name)))
  const overrides = readPins(step, request.definition.pipDependencies ?? '')
  return resolvePackages(step, comfyui, asking, {
    uv,
    base,
    target: request.target,
    sources: options.packages,
    overrides,
  })
}

async function linkModels(models: ModelStore, locked: readonly LockedModel[], folder: string): Promise<void> {
  for (const { type, filename, sha256 } of locked) {
    const path = join(folder, 'ComfyUI', 'models', type, filename)
    await mkdir(dirname(path), { recursive: true })
    try {
      await symlink(models.pathOf(sha256), path)
    } catch (error) {
      const isTwice = error instanceof Error && 'code' in error && error.code === 'EEXIST'
      throw isTwice
        ? new BuildFailure(
            'assemble',
            `model ${type}/${filename}: the build has it twice, or ComfyUI brings a file of this name; remove one`,
          )
        : error
    }
  }
}

async function give(folder: string, user: SystemUser | null): Promise<void> {
  if (user === null) return
  await lchown(folder, user.uid, user.gid)
  for await (const { path } of walkTree(folder)) await lchown(join(folder, path), user.uid, user.gid)
}

/** Makes room from what can be fetched again before it gives up. Throws BuildFailure. */
async function mustFit({ options, shop }: Parts, step: Step, phase: BuildPhase, uv?: string): Promise<void> {
  if (await hasRoom(options, shop.root)) return
  if (uv !== undefined) {
    step.say('the folder of the builder is full: removing what can be fetched again')
    // uv waits for others of its kind that use the cache.
    await run(step, [uv, 'cache', 'clean', '--quiet'], { cwd: step.scratch, isQuiet: true })
    await removeMirrors(shop.root)
  }
  if (!(await hasRoom(options, shop.root))) throw fullDisk(phase)
}

async function removeMirrors(root: string): Promise<void> {
  for (const name of (await readdir(join(root, 'git')).catch(nullWhenMissing)) ?? []) {
    using lock = tryLock(join(root, 'locks', `git-${name.replace('.git', '')}.lock`))
    if (lock !== null) await remove(join(root, 'git', name))
  }
}

async function hasRoom({ maxBytes, spareBytes }: BuilderOptions, root: string): Promise<boolean> {
  return (await freeBytes(root)) >= spareBytes && (await treeBytes(root)) <= maxBytes
}

async function freeBytes(root: string): Promise<number> {
  const { bavail, bsize } = await statfs(root)
  return bavail * bsize
}

/** A disk that fills up while programs of others write to it would harm everybody else on it. */
function watchDisk({ options, shop }: Parts, full: AbortController): AbortController {
  const over = new AbortController()
  const watch = async () => {
    while (!over.signal.aborted) {
      const free = await freeBytes(shop.root).catch(() => null)
      if (free !== null && free < options.spareBytes) full.abort(new DiskFull('the disk is full'))
      await sleep(WATCH_EVERY_MS, over.signal)
    }
  }
  void watch()
  return over
}

async function keepOnly(
  parts: Parts,
  isKept: (releaseId: string) => Promise<boolean>,
  before: TidyBefore,
): Promise<number> {
  const { options, folders, shop } = parts
  const freed = await folders.keepOnly(isKept, before.finished)
  return freed + (await dropModels(parts, async () => ((await hasRoom(options, shop.root)) ? before.fetched : null)))
}

/** What failed builds have fetched counts for no account, and must not keep the others from building. */
async function makeRoom(parts: Parts): Promise<void> {
  if (!(await hasRoom(parts.options, parts.shop.root))) await dropModels(parts, async () => null)
}

/** Removes models that no release has and that were fetched before then; null: whenever. Resolves with the bytes that were freed. */
async function dropModels(
  { folders, models, shop }: Parts,
  findFetchedBefore: () => Promise<Date | null>,
): Promise<number> {
  using lock = tryLock(folders.lockOf(MODELS_LOCK))
  // A build may have brought models that no release names yet, and have files of its own lying about.
  if (lock === null) return 0
  await remove(join(shop.root, 'scratch'))
  await mkdir(join(shop.root, 'scratch'))
  const kept = new Set(
    (await folders.all()).flatMap(({ lock: { models: locked } }) => locked.map(({ sha256 }) => sha256)),
  )
  return models.keepOnly(kept, await findFetchedBefore())
}

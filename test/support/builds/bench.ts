/** A builder in a folder of its own, with a ComfyUI, wheels and packs that the test makes. */
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { publicInternet } from '../../../lib/outbound/network.ts'
import { type BuilderOptions, openBuilder } from '../../../src/adapters/builders/open-builder.ts'
import { findOnPath } from '../../../src/adapters/builders/tools.ts'
import { readChildEnvironment } from '../../../src/config/child-environment.ts'
import type { Builder, BuildRequest } from '../../../src/domain/environments/builder.ts'
import type { BuildDefinition } from '../../../src/domain/environments/definition.ts'
import type { ReleaseLock } from '../../../src/domain/environments/lock.ts'
import { comfyuiFiles, writeFolder } from './packages.ts'

const env = readChildEnvironment()
const uv = await findOnPath('uv', env)
export const withoutUv: string | false =
  uv === null ? 'there is no uv on the path: install it, for example with pip' : false

export const CPU = { os: 'linux', gpu: 'cpu' } as const
const GIB = 2 ** 30
const LATER = new Date('9999-01-01')

export interface BuildBench extends AsyncDisposable {
  readonly folder: string
  readonly wheels: string
  readonly comfyui: string
  readonly builder: Builder
  readonly log: string[]
  readonly blobs: Map<string, Buffer>
  build(
    definition: BuildDefinition,
    more?: Partial<BuildRequest> & { readonly lock?: ReleaseLock | null; readonly builder?: Builder },
  ): ReturnType<Builder['build']>
  /** Removes all but the releases that are kept, whatever its age. */
  keepOnly(isKept: (releaseId: string) => Promise<boolean>): Promise<number>
  /** Another one over the same folders. */
  reopen(options?: Partial<BuilderOptions>): Promise<Builder & AsyncDisposable>
}

export async function openBuildBench(
  options: Partial<BuilderOptions> = {},
  { requirements = '' } = {},
): Promise<BuildBench> {
  const folder = await realpath(await mkdtemp(path.join(tmpdir(), 'atelier-build-')))
  const wheels = await writeFolder(path.join(folder, 'wheels'), { README: '' })
  const comfyui = await writeFolder(path.join(folder, 'comfyui'), comfyuiFiles(requirements))
  const given = benchOptions({ folder, wheels, comfyui }, options)
  const builder = await openBuilder(given)
  const log: string[] = []
  const blobs = new Map<string, Buffer>()
  return {
    ...{ folder, wheels, comfyui, builder, log, blobs },
    build: (definition, { builder: other = builder, ...more } = {}) =>
      other.build({
        releaseId: 'release-1',
        definition: { baseComfyVersion: 'v0.3.40', ...definition },
        target: CPU,
        lock: null,
        openBlob: async (id) => openBlob(blobs, id),
        note: async () => {},
        say: (line) => void log.push(line),
        signal: new AbortController().signal,
        ...more,
      }),
    keepOnly: (isKept) => builder.keepOnly(isKept, { finished: new Date(), fetched: LATER }),
    reopen: (others = {}) => openBuilder({ ...given, ...others }),
    async [Symbol.asyncDispose]() {
      await builder[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

async function openBlob(blobs: ReadonlyMap<string, Buffer>, id: string): Promise<NodeJS.ReadableStream> {
  const bytes = blobs.get(id)
  if (bytes === undefined) throw new Error(`the test has no blob ${id}`)
  const { Readable } = await import('node:stream')
  return Readable.from([bytes])
}

export function benchOptions(
  { folder, wheels, comfyui }: { readonly folder: string; readonly wheels: string; readonly comfyui: string },
  options: Partial<BuilderOptions> = {},
): BuilderOptions {
  return {
    directory: path.join(folder, 'builder'),
    targets: [CPU],
    comfyui: { kind: 'folder', path: comfyui },
    packFolder: null,
    modelFolders: [],
    registry: null,
    packages: { indexes: [], wheelFolders: [wheels], torch: null },
    cuda: null,
    pythons: [],
    uv,
    origins: [],
    headers: new Map(),
    network: publicInternet,
    rules: { allowsPickles: false },
    maxBytes: 20 * GIB,
    maxModelBytes: GIB,
    spareBytes: 0,
    startWithinMs: 120_000,
    user: null,
    env,
    version: 'test',
    ...options,
  }
}

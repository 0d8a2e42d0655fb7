/**
 * A build: the editable, named definition of an environment. It says what is wanted, in the words of its author; what exactly that
 * is, a release says (lock.ts). Field names are those of the wire, because the definition is kept and handed back as it came.
 */
import type { BlobKind } from './blob.ts'

export interface BuildDefinition {
  /** A tag, a branch or a commit of ComfyUI; absent: not chosen yet, and nothing can be released. */
  readonly baseComfyVersion?: string
  /** Python and torch, by the id of a base image such as `cuda130-py312`; absent: the default of the target. */
  readonly baseImage?: string
  readonly models?: readonly DefinedModel[]
  readonly customNodes?: readonly DefinedPack[]
  /** Lines of a requirements file. Each overrides what packages ask for; none adds a package. */
  readonly pipDependencies?: string
  readonly modelPolicy?: DefinedPolicy
  readonly partnerNodePolicy?: DefinedPolicy
  readonly customNodePolicy?: DefinedPolicy
}

/** From an address or from a blob, never from both; with none of them, from the operator's folders of models, by its type and name. */
export interface DefinedModel {
  /** The folder below `models/`. */
  readonly type: string
  readonly filename: string
  readonly sourceUri?: string
  readonly blobId?: string
  readonly sha256?: string
}

/**
 * From a blob, from the registry of packs (`id`, `registryVersion`) or from a git repository; with none of them, from the operator's
 * folder of packs, by its name.
 */
export interface DefinedPack {
  /** Its folder below `custom_nodes/`. */
  readonly name: string
  readonly blobId?: string
  readonly id?: string
  readonly registryVersion?: string
  readonly repository?: string
  readonly gitRef?: string
  readonly commit?: string
}

/** Kept in the release; nobody enforces it. */
interface DefinedPolicy {
  readonly mode: 'allowlist' | 'blocklist'
  readonly list: readonly string[]
}

/** A platform that a release is made for, as `os/gpu`. */
export interface BuildTarget {
  readonly os: 'linux' | 'darwin' | 'windows'
  readonly gpu: 'nvidia' | 'amd' | 'apple' | 'cpu'
}

export function targetText({ os, gpu }: BuildTarget): string {
  return `${os}/${gpu}`
}

/** `text`: as `targetText` writes it. */
export function readTarget(text: string): BuildTarget {
  const [os, gpu] = text.split('/')
  return { os, gpu } as BuildTarget
}

/** The blobs that a definition names, each once, with the kind that it takes them for. */
export function blobsOf({ models = [], customNodes = [] }: BuildDefinition): Map<string, BlobKind> {
  const named = new Map<string, BlobKind>()
  for (const { blobId } of models) if (blobId !== undefined) named.set(blobId, 'model')
  for (const { blobId } of customNodes) if (blobId !== undefined) named.set(blobId, 'node_zip')
  return named
}

/**
 * Definitions made from what people have: an export of a desktop installation, a snapshot of ComfyUI-Manager. The registry of packs is
 * asked for what only it knows; what it does not know is left out of the definition, and the report says so.
 */
import { toRepository } from '../../../lib/text/repository-address.ts'
import { BuildError } from './build-error.ts'
import type { BuildDefinition, DefinedPack } from './definition.ts'
import type { PackLookup, PublishedPack } from './pack-registry.ts'
import { isCommit, isPackName, isRef, isRegistryVersion, isRepository } from './read-definition.ts'

export interface ResolvedDefinition {
  readonly definition: BuildDefinition
  readonly report: Readonly<Record<string, unknown>>
}

type Fields = Readonly<Record<string, unknown>>

const MAX_PACKS = 512
// The base image has these in the variant for its platform: a pin of another machine would replace them.
const OWN_PACKAGES = /^(?:torch|torchvision|torchaudio|torchsde|triton|xformers|nvidia-.*|cuda-.*|pytorch-triton.*)$/i
const PINNABLE = /^[A-Za-z0-9][A-Za-z0-9._-]*$/
const VERSION = /^[A-Za-z0-9][A-Za-z0-9.!+_-]*$/

/** Throws BuildError `invalid_request`. */
export async function resolveSnapshot(given: unknown, lookup: PackLookup): Promise<ResolvedDefinition> {
  const fields = isRecord(given) ? given : {}
  if (fields['git_custom_nodes'] !== undefined || fields['cnr_custom_nodes'] !== undefined)
    return resolveManagerSnapshot(fields, lookup)
  const list = fields['snapshots']
  const snapshot = Array.isArray(list) ? list[list.length - 1] : given
  if (!isRecord(snapshot) || !(Array.isArray(snapshot['customNodes']) || isRecord(snapshot['comfyui'])))
    throw new BuildError(
      'invalid_request',
      'snapshot must be an export of ComfyUI Desktop (comfyui-desktop-2-snapshot), or a snapshot of ComfyUI-Manager',
    )
  const { customNodes = [], comfyui, pipPackages, pythonVersion } = snapshot
  const nodes = (Array.isArray(customNodes) ? customNodes : []).filter(isRecord)
  const packs = await collectPacks(
    lookup,
    nodes
      .filter(({ enabled }) => enabled !== false)
      .map(({ type, id, dirName, url, commit, version }) => ({
        name: text(dirName) ?? text(id) ?? nameOf(text(url) ?? ''),
        ...(type === 'git'
          ? { url: text(url), commit: text(commit) }
          : { registryId: text(id), version: text(version) }),
      })),
  )
  const version = readVersion(isRecord(comfyui) ? comfyui['baseTag'] : null)
  const pins = collectPins(Object.entries(isRecord(pipPackages) ? pipPackages : {}))
  return {
    definition: {
      ...version.definition,
      models: [],
      customNodes: packs.packs,
      ...(pins.lines !== '' && { pipDependencies: pins.lines }),
    },
    report: { ...packs.report, ...pins.report, ...version.report, pythonVersion: text(pythonVersion) },
  }
}

async function resolveManagerSnapshot(snapshot: Fields, lookup: PackLookup): Promise<ResolvedDefinition> {
  const { comfyui, git_custom_nodes: git, cnr_custom_nodes: registry, file_custom_nodes: files, pips } = snapshot
  const fromGit = Object.entries(isRecord(git) ? git : {}).flatMap(([url, entry]) =>
    isRecord(entry) && entry['disabled'] === true
      ? []
      : [{ name: nameOf(url), url, commit: isRecord(entry) ? text(entry['hash']) : null }],
  )
  const fromRegistry = Object.entries(isRecord(registry) ? registry : {}).map(([id, version]) => ({
    ...{ name: id, registryId: id, version: text(version) },
  }))
  const packs = await collectPacks(lookup, [...fromGit, ...fromRegistry])
  const pins = collectPins(
    Object.keys(isRecord(pips) ? pips : {}).map((line) => line.split('==') as [string, string | undefined]),
  )
  const version = readVersion(comfyui)
  const single = (Array.isArray(files) ? files : []).filter(isRecord).map(({ filename }) => text(filename))
  return {
    definition: {
      ...version.definition,
      models: [],
      customNodes: packs.packs,
      ...(pins.lines !== '' && { pipDependencies: pins.lines }),
    },
    report: {
      ...{ ...packs.report, ...pins.report, ...version.report },
      unresolvedNodes: [...packs.nowhere, ...single.filter((name) => name !== null)],
    },
  }
}

function readVersion(given: unknown): {
  readonly definition: Pick<BuildDefinition, 'baseComfyVersion'>
  readonly report: Fields
} {
  if (isRef(given)) return { definition: { baseComfyVersion: given }, report: {} }
  return { definition: {}, report: text(given) === null ? {} : { droppedComfyVersion: given } }
}

interface FoundPack {
  readonly name: string
  readonly url?: string | null
  readonly commit?: string | null
  readonly registryId?: string | null
  readonly version?: string | null
}

async function collectPacks(
  lookup: PackLookup,
  found: readonly FoundPack[],
): Promise<{ readonly packs: DefinedPack[]; readonly report: Fields; readonly nowhere: readonly string[] }> {
  if (found.length > MAX_PACKS)
    throw new BuildError('invalid_request', `the snapshot has ${found.length} packs; at most ${MAX_PACKS} are taken`)
  const packs = new Map<string, DefinedPack>()
  const told = createRegistryReport(lookup)
  const [packsWithoutVersion, collidingNodes, nowhere]: [string[], string[], string[]] = [[], [], []]
  const published = await Promise.all(found.map((pack) => (isNowhere(pack) ? findPublished(lookup, pack) : null)))
  for (const [index, pack] of found.entries()) {
    const { url } = pack
    const repository = toRepository(url ?? '')
    const commit = isCommit(pack.commit) ? pack.commit : null
    const name = isPackName(pack.name) ? pack.name : nameOf(repository ?? '')
    if (!isPackName(name) || (!isNowhere(pack) && !isRepository(repository))) {
      nowhere.push(url ?? pack.name)
      continue
    }
    const source = isNowhere(pack)
      ? told.take(published[index] ?? null, { label: pack.registryId ?? name, version: pack.version })
      : { repository: String(repository), ...(commit !== null && { commit }) }
    if (source === null) continue
    if (packs.has(name.toLowerCase())) collidingNodes.push(name)
    else packs.set(name.toLowerCase(), { name, ...source })
    if (!isNowhere(pack) && commit === null) packsWithoutVersion.push(name)
  }
  const report = {
    ...{ ...told.report(), packsWithoutVersion, collidingNodes },
    ...(nowhere.length > 0 && { unresolvedNodes: nowhere }),
  }
  return { packs: [...packs.values()], report, nowhere }
}

/** Only the registry knows where it is. */
function isNowhere({ url }: FoundPack): boolean {
  return url === undefined || url === null
}

/** A version that the registry could not have, such as `nightly`, is answered with the newest. */
export function findPublished(
  lookup: PackLookup,
  { registryId, version }: Pick<FoundPack, 'registryId' | 'version'>,
): Promise<PublishedPack | null> {
  if (!registryId) return Promise.resolve(null)
  return lookup.find(registryId, isRegistryVersion(version) ? version : null)
}

/** What the report says of packs of the registry. */
export function createRegistryReport(lookup: PackLookup) {
  const [missing, pending] = [new Set<string>(), new Set<string>()]
  let isNewest = false
  return {
    /** null: it is left out. */
    take(
      found: PublishedPack | null,
      { label, version }: { readonly label: string; readonly version: unknown },
    ): Pick<DefinedPack, 'id' | 'registryVersion'> | null {
      if (found === null) {
        missing.add(label)
        return null
      }
      if (found.state === 'pending') pending.add(found.id)
      if (found.version !== version) isNewest = true
      return { id: found.id, registryVersion: found.version }
    },
    report(): Fields {
      const problem = lookup.problem()
      return {
        notInRegistry: [...missing],
        ...(pending.size > 0 && { registryPending: [...pending] }),
        ...(isNewest && { pinnedToLatest: true }),
        ...(problem !== null && { registryProblem: problem }),
      }
    },
  }
}

function collectPins(pins: readonly (readonly [string, unknown])[]): {
  readonly lines: string
  readonly report: Fields
} {
  const [skippedPins, unpinnablePins, lines]: [string[], string[], string[]] = [[], [], []]
  for (const [name, given] of pins) {
    const version = text(given)
    if (OWN_PACKAGES.test(name)) skippedPins.push(name)
    else if (!PINNABLE.test(name) || version === null || !VERSION.test(version)) unpinnablePins.push(name)
    else lines.push(`${name}==${version}`)
  }
  return { lines: lines.sort().join('\n'), report: { skippedPins, unpinnablePins } }
}

function nameOf(url: string): string {
  return (
    url
      .replace(/\.git$/, '')
      .split('/')
      .at(-1) ?? url
  )
}

export function isRecord(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function text(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

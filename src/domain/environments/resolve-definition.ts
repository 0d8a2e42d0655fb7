/**
 * Definitions made from what people have: an export of a desktop installation, a snapshot of ComfyUI-Manager. Nothing is
 * fetched: what only the registry of packs could tell is left out of the definition, and the report says so.
 */
import { BuildError } from './build-error.ts'
import type { BuildDefinition, DefinedPack } from './definition.ts'

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
export function resolveSnapshot(given: unknown): ResolvedDefinition {
  const fields = isRecord(given) ? given : {}
  if (fields['git_custom_nodes'] !== undefined || fields['cnr_custom_nodes'] !== undefined)
    return resolveManagerSnapshot(fields)
  const list = fields['snapshots']
  const snapshot = Array.isArray(list) ? list[list.length - 1] : given
  if (!isRecord(snapshot) || !(Array.isArray(snapshot['customNodes']) || isRecord(snapshot['comfyui'])))
    throw new BuildError(
      'invalid_request',
      'snapshot must be an export of ComfyUI Desktop (comfyui-desktop-2-snapshot), or a snapshot of ComfyUI-Manager',
    )
  const { customNodes = [], comfyui, pipPackages, pythonVersion } = snapshot
  const nodes = (Array.isArray(customNodes) ? customNodes : []).filter(isRecord)
  const packs = collectPacks(
    nodes
      .filter(({ enabled }) => enabled !== false)
      .map(({ type, id, dirName, url, commit, version }) => ({
        name: text(dirName) ?? text(id) ?? nameOf(text(url) ?? ''),
        ...(type === 'git'
          ? { url: text(url), commit: text(commit) }
          : { registryId: text(id), version: text(version) }),
      })),
  )
  const tag = isRecord(comfyui) ? text(comfyui['baseTag']) : null
  const pins = collectPins(Object.entries(isRecord(pipPackages) ? pipPackages : {}))
  return {
    definition: {
      ...(tag !== null && { baseComfyVersion: tag }),
      models: [],
      customNodes: packs.packs,
      ...(pins.lines !== '' && { pipDependencies: pins.lines }),
    },
    report: { ...packs.report, ...pins.report, pythonVersion: text(pythonVersion) },
  }
}

function resolveManagerSnapshot(snapshot: Fields): ResolvedDefinition {
  const { comfyui, git_custom_nodes: git, cnr_custom_nodes: registry, file_custom_nodes: files, pips } = snapshot
  const fromGit = Object.entries(isRecord(git) ? git : {}).flatMap(([url, entry]) =>
    isRecord(entry) && entry['disabled'] === true
      ? []
      : [{ name: nameOf(url), url, commit: isRecord(entry) ? text(entry['hash']) : null }],
  )
  const fromRegistry = Object.entries(isRecord(registry) ? registry : {}).map(([id, version]) => ({
    ...{ name: id, registryId: id, version: text(version) },
  }))
  const packs = collectPacks([...fromGit, ...fromRegistry])
  const pins = collectPins(
    Object.keys(isRecord(pips) ? pips : {}).map((line) => line.split('==') as [string, string | undefined]),
  )
  const single = (Array.isArray(files) ? files : []).filter(isRecord).map(({ filename }) => text(filename))
  return {
    definition: {
      ...(text(comfyui) !== null && { baseComfyVersion: String(comfyui) }),
      models: [],
      customNodes: packs.packs,
      ...(pins.lines !== '' && { pipDependencies: pins.lines }),
    },
    report: { ...packs.report, ...pins.report, unresolvedNodes: single.filter((name) => name !== null) },
  }
}

interface FoundPack {
  readonly name: string
  readonly url?: string | null
  readonly commit?: string | null
  readonly registryId?: string | null
  readonly version?: string | null
}

function collectPacks(found: readonly FoundPack[]): { readonly packs: DefinedPack[]; readonly report: Fields } {
  if (found.length > MAX_PACKS)
    throw new BuildError('invalid_request', `the snapshot has ${found.length} packs; at most ${MAX_PACKS} are taken`)
  const packs = new Map<string, DefinedPack>()
  const [notInRegistry, packsWithoutVersion, collidingNodes]: [string[], string[], string[]] = [[], [], []]
  for (const { name, url, commit, registryId } of found) {
    if (url === undefined || url === null) {
      notInRegistry.push(registryId ?? name)
      continue
    }
    if (packs.has(name.toLowerCase())) collidingNodes.push(name)
    else packs.set(name.toLowerCase(), { name, repository: url.replace(/\.git$/, ''), ...(commit && { commit }) })
    if (!commit) packsWithoutVersion.push(name)
  }
  return { packs: [...packs.values()], report: { notInRegistry, packsWithoutVersion, collidingNodes } }
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

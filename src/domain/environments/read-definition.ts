/**
 * Reads the definition of a build as it comes from outside: bounded, every fault told with its field. What it does not know it keeps,
 * because files of newer clients are handed back as they came.
 */
import { type DefinitionFault, invalidDefinition } from './build-error.ts'
import type { BuildDefinition, BuildTarget, DefinedModel, DefinedPack } from './definition.ts'

const MAX_ENTRIES = 512
const MAX_PINS_BYTES = 64 * 1024
/** Of the whole, as JSON. */
const MAX_DEFINITION_BYTES = 1024 * 1024
const MAX_FAULTS = 50

const SEGMENT = /^(?!\.{1,2}$)[^/\\:*?"<>|\p{Cc}]{1,255}(?<![. ])$/u
const DEVICE = /^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)/i
const SHA256 = /^[0-9a-f]{64}$/i
const COMMIT = /^[0-9a-f]{40}$/i
const REPOSITORY = /^https:\/\/[A-Za-z0-9.-]+(?::\d{1,5})?\/[\w.~-]+(?:\/[\w.~-]+)+$/
const PLAIN_REPOSITORY = new RegExp(REPOSITORY.source.replace('https', 'http'))
// Neither an option of git, nor one of its own words for ranges and remote names.
const REF = /^(?!-)(?!.*\.\.)[\w./+@-]{1,200}$/
const REGISTRY_VERSION = /^\d{1,9}\.\d{1,9}\.\d{1,9}$/
const SLUG = /^[a-z0-9](?:[a-z0-9._-]{0,99})$/i
const BASE_IMAGE = /^[a-z0-9][a-z0-9._-]{0,63}$/

type Fields = Readonly<Record<string, unknown>>

/** `origins`: those of the operator, which may be plain http. Throws BuildError `invalid_definition`. */
export function readDefinition(value: unknown, origins: readonly string[]): BuildDefinition {
  const faults = findFaults(value, origins)
  if (faults.length > 0) throw invalidDefinition(faults.slice(0, MAX_FAULTS))
  return value as BuildDefinition
}

function findFaults(value: unknown, origins: readonly string[]): DefinitionFault[] {
  if (!isRecord(value)) return [{ field: 'definition', reason: 'must be an object' }]
  const size = Buffer.byteLength(JSON.stringify(value))
  if (size > MAX_DEFINITION_BYTES)
    return [{ field: 'definition', reason: `has ${size} bytes; at most ${MAX_DEFINITION_BYTES} are taken` }]
  const faults: DefinitionFault[] = []
  const say = (field: string, reason: string) => void faults.push({ field, reason })
  const { baseComfyVersion, baseImage, pipDependencies } = value
  if (baseComfyVersion !== undefined && !isRef(baseComfyVersion))
    say('baseComfyVersion', 'must be a tag, a branch or a commit of ComfyUI, such as v0.3.40')
  if (baseImage !== undefined && !isText(baseImage, BASE_IMAGE))
    say('baseImage', 'must be the id of a base image; GET /v1/base-images lists them')
  if (pipDependencies !== undefined && typeof pipDependencies !== 'string')
    say('pipDependencies', 'must be a text, with a requirement in each line')
  else if (Buffer.byteLength(String(pipDependencies ?? '')) > MAX_PINS_BYTES)
    say('pipDependencies', `is longer than ${MAX_PINS_BYTES} bytes`)
  faults.push(...findEntryFaults(value['models'], { name: 'models', origins }, findModelFaults))
  faults.push(...findEntryFaults(value['customNodes'], { name: 'customNodes', origins }, findPackFaults))
  faults.push(...findRepeated(value['models'], 'models', ({ type, filename }) => `${type}/${filename}`))
  faults.push(...findRepeated(value['customNodes'], 'customNodes', ({ name }) => String(name)))
  for (const name of ['modelPolicy', 'partnerNodePolicy', 'customNodePolicy'])
    if (!isPolicy(value[name])) say(name, 'must be an object with mode (allowlist or blocklist) and a list of texts')
  return faults
}

type Say = (field: string, reason: string) => void

function findEntryFaults(
  list: unknown,
  { name, origins }: { readonly name: string; readonly origins: readonly string[] },
  find: (entry: Fields, say: Say, origins: readonly string[]) => void,
): DefinitionFault[] {
  if (list === undefined) return []
  if (!Array.isArray(list)) return [{ field: name, reason: 'must be a list' }]
  if (list.length > MAX_ENTRIES)
    return [{ field: name, reason: `has ${list.length} entries; at most ${MAX_ENTRIES} are taken` }]
  const faults: DefinitionFault[] = []
  for (const [index, entry] of list.entries()) {
    const here = `${name}[${index}]`
    if (!isRecord(entry)) faults.push({ field: here, reason: 'must be an object' })
    else find(entry, (field, reason) => void faults.push({ field: `${here}.${field}`, reason }), origins)
  }
  return faults
}

function findModelFaults(entry: Fields, say: Say, origins: readonly string[]): void {
  const { type, filename, sourceUri, blobId, sha256 } = entry as Partial<DefinedModel>
  const segments = typeof type === 'string' ? type.split('/') : []
  if (segments.length === 0 || String(type).length > 255 || !segments.every(isSegment))
    say('type', 'must be a folder below models/, such as checkpoints or loras/sdxl')
  else if (/^(?:configs|custom_nodes)$/i.test(segments[0])) say('type', 'must not lie below configs or custom_nodes')
  if (!isSegment(filename)) say('filename', 'must be the name of one file')
  if (sourceUri !== undefined && blobId !== undefined) say('blobId', 'only one of sourceUri and blobId is taken')
  if (sourceUri !== undefined && !isAddress(sourceUri, origins))
    say('sourceUri', 'must be an https address without a user')
  if (blobId !== undefined && !isText(blobId, /^[\w-]{1,100}$/)) say('blobId', 'must be the id of an uploaded file')
  if (sha256 !== undefined && !isText(sha256, SHA256)) say('sha256', 'must have 64 hex digits')
}

function findPackFaults(entry: Fields, say: Say, origins: readonly string[]): void {
  const { name, blobId, id, registryVersion, repository, gitRef, commit } = entry as Partial<DefinedPack>
  if (!isPackName(name)) say('name', 'must be the name of a folder below custom_nodes/')
  const sources = [blobId, registryVersion, repository].filter((source) => source !== undefined)
  if (sources.length > 1) say('repository', 'only one source is taken: blobId, id with registryVersion, or repository')
  if (sources.length === 0 && id !== undefined)
    say(
      'registryVersion',
      'is needed beside id, such as 1.2.3; without both, name is looked for in the folder of packs',
    )
  if (blobId !== undefined && !isText(blobId, /^[\w-]{1,100}$/)) say('blobId', 'must be the id of an uploaded pack')
  if (registryVersion !== undefined) {
    if (!isRegistryVersion(registryVersion)) say('registryVersion', 'must have three numbers, such as 1.2.3')
    if (!isText(id, SLUG)) say('id', 'must be the name of the pack in the registry')
  }
  if (repository === undefined) return
  if (!isRepository(repository, origins)) say('repository', 'must be an https address of a repository, without a user')
  if (gitRef !== undefined && !isRef(gitRef)) say('gitRef', 'must be a tag, a branch or a commit')
  if (commit !== undefined && !isCommit(commit)) say('commit', 'must have 40 hex digits')
}

function findRepeated(list: unknown, name: string, keyOf: (entry: Fields) => string): DefinitionFault[] {
  const seen = new Set<string>()
  const faults: DefinitionFault[] = []
  for (const [index, entry] of (Array.isArray(list) ? list : []).entries()) {
    if (!isRecord(entry)) continue
    // As file systems that ignore case see them.
    const key = keyOf(entry).toLowerCase()
    if (seen.has(key)) faults.push({ field: `${name}[${index}]`, reason: 'is there already, under the same name' })
    seen.add(key)
  }
  return faults
}

/** Throws BuildError `invalid_definition`. */
export function readTargets(value: unknown): readonly BuildTarget[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > TARGETS.length)
    throw invalidDefinition([{ field: 'targets', reason: `must be a list of 1 to ${TARGETS.length} targets` }])
  const targets = value.map((entry, index): BuildTarget => {
    const { os, gpu } = isRecord(entry) ? entry : {}
    const found = TARGETS.find((target) => target.os === os && target.gpu === gpu)
    if (found !== undefined) return found
    const reason = 'must have os (linux, darwin, windows) and gpu (nvidia, amd, apple, cpu)'
    throw invalidDefinition([{ field: `targets[${index}]`, reason }])
  })
  const repeated = targets.findIndex((target, index) => targets.indexOf(target) !== index)
  if (repeated !== -1) throw invalidDefinition([{ field: `targets[${repeated}]`, reason: 'is there already' }])
  return targets
}

const TARGETS: readonly BuildTarget[] = (['linux', 'darwin', 'windows'] as const).flatMap((os) =>
  (['nvidia', 'amd', 'apple', 'cpu'] as const).map((gpu) => ({ os, gpu })),
)

function isRecord(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isText(value: unknown, pattern: RegExp): value is string {
  return typeof value === 'string' && pattern.test(value)
}

/** The address of a repository. */
export function isRepository(value: unknown, origins: readonly string[] = []): value is string {
  return isText(value, REPOSITORY) || (isText(value, PLAIN_REPOSITORY) && isListed(value, origins))
}

function isListed(address: string, origins: readonly string[]): boolean {
  return origins.includes(URL.parse(address)?.origin ?? '')
}

/** A tag, a branch or a commit. */
export function isRef(value: unknown): value is string {
  return isText(value, REF)
}

export function isCommit(value: unknown): value is string {
  return isText(value, COMMIT)
}

/** The folder of a pack. */
export function isPackName(value: unknown): value is string {
  return isSegment(value) && !/^[.-]/.test(value)
}

export function isRegistryVersion(value: unknown): value is string {
  return isText(value, REGISTRY_VERSION)
}

/** One part of a path that every file system takes. */
export function isSegment(value: unknown): value is string {
  return isText(value, SEGMENT) && !DEVICE.test(value)
}

function isAddress(value: unknown, origins: readonly string[]): boolean {
  if (typeof value !== 'string' || value.length > 4096 || !URL.canParse(value)) return false
  const { protocol, username, password } = new URL(value)
  return (protocol === 'https:' || isListed(value, origins)) && username === '' && password === ''
}

function isPolicy(value: unknown): boolean {
  if (value === undefined || value === null) return true
  if (!isRecord(value)) return false
  const { mode, list } = value
  const isMode = mode === 'allowlist' || mode === 'blocklist'
  return isMode && Array.isArray(list) && list.length <= 10_000 && list.every((each) => typeof each === 'string')
}

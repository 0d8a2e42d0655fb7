/**
 * What a workflow needs, by what it says itself: the editor writes beside each node which pack brought it, and templates also where their
 * models come from. The registry of packs is asked for what only it knows: the versions of its packs, and which pack brings a class.
 */
import { BuildError } from './build-error.ts'
import type { DefinedModel, DefinedPack } from './definition.ts'
import type { PackLookup } from './pack-registry.ts'
import { isSegment } from './read-definition.ts'
import { createRegistryReport, findPublished, isRecord, type ResolvedDefinition } from './resolve-definition.ts'

type Fields = Readonly<Record<string, unknown>>

/** Drawn in the editor only; nothing runs them. */
const EDITOR_ONLY = new Set(['Note', 'MarkdownNote', 'Reroute', 'PrimitiveNode'])
const CORE = 'comfy-core'
const COMMIT = /^[0-9a-f]{40}$/i
const GITHUB = /^[\w.-]+\/[\w.-]+$/
const MODEL_FILE = /\.(?:safetensors|sft|gguf|ckpt|pt|pth|bin)$/i
const MAX_NAME = 300
const MAX_ENTRIES = 512

interface KnownHere {
  /** Of ComfyUI itself, as far as the engines here tell. */
  readonly isKnown: (classType: string) => boolean
  /** Packs of the account's own releases, by the classes that they brought when these were built. */
  readonly packs: ReadonlyMap<string, DefinedPack>
  /** Models of the account's own builds, by the name of the file. */
  readonly models: ReadonlyMap<string, DefinedModel>
  readonly lookup: PackLookup
}

interface Node {
  readonly type: string
  readonly properties: Fields
  readonly values: unknown
}

export async function resolveWorkflow(
  workflow: unknown,
  here: KnownHere,
): Promise<ResolvedDefinition & { readonly format: 'ui' | 'api' }> {
  if (!isRecord(workflow)) throw new BuildError('invalid_request', 'workflow must be a JSON object')
  const format = Array.isArray(workflow['nodes']) ? 'ui' : 'api'
  const all = format === 'ui' ? readSaved(workflow) : readPrompt(workflow)
  if (format === 'api' && all.length === 0)
    throw new BuildError(
      'invalid_request',
      'workflow has no nodes: it must be a workflow of the editor (with "nodes") or in API format (with "class_type" in each node)',
    )
  const nodes = all.filter(({ type }) => !EDITOR_ONLY.has(type))
  const packs = await resolvePacks(nodes, here)
  const models = resolveModels(workflow, nodes, here)
  return {
    format,
    definition: { models: models.found, customNodes: packs.found },
    report: { ...packs.report, ...models.report, unresolvedNodes: [] },
  }
}

function readSaved({ nodes, definitions }: Fields): Node[] {
  const subgraphs = isRecord(definitions) && Array.isArray(definitions['subgraphs']) ? definitions['subgraphs'] : []
  const inner = subgraphs.filter(isRecord).flatMap((each) => (Array.isArray(each['nodes']) ? each['nodes'] : []))
  // A node of a subgraph bears its id.
  const own = new Set(subgraphs.filter(isRecord).map(({ id }) => id))
  return [...(nodes as unknown[]), ...inner]
    .filter(isRecord)
    .flatMap(({ type, properties, widgets_values: values }) =>
      isName(type) && !own.has(type) ? [{ type, properties: isRecord(properties) ? properties : {}, values }] : [],
    )
}

function readPrompt(workflow: Fields): Node[] {
  return Object.values(workflow).flatMap((node) => {
    const type = isRecord(node) ? node['class_type'] : null
    return isRecord(node) && isName(type) ? [{ type, properties: {}, values: node['inputs'] }] : []
  })
}

interface Resolved<Entry> {
  readonly found: readonly Entry[]
  readonly report: Fields
}

/** The account's own packs first: they have been built. Then what the node says of itself, then what the registry knows. */
async function resolvePacks(nodes: readonly Node[], here: KnownHere): Promise<Resolved<DefinedPack>> {
  const { isKnown, packs, lookup } = here
  const found = new Map<string, DefinedPack>()
  const [unresolvedClasses, packsWithoutVersion] = [new Set<string>(), new Set<string>()]
  const told = createRegistryReport(lookup)
  const add = (name: string, source: Omit<DefinedPack, 'name'> | null) =>
    void (source !== null && found.set(name.toLowerCase(), { name, ...source }))
  const published = await Promise.all(nodes.map((node) => findInRegistry(node, here)))
  for (const [index, { type, properties }] of nodes.entries()) {
    const { cnr_id: id, aux_id: repository, ver: version } = properties
    const own = packs.get(type)
    const commit = typeof version === 'string' && COMMIT.test(version) ? version.toLowerCase() : null
    const known = published[index] ?? null
    if (own !== undefined) found.set(own.name.toLowerCase(), own)
    else if (id === CORE || known?.id === CORE) continue
    else if (typeof repository === 'string' && GITHUB.test(repository)) {
      const name = repository.split('/')[1].replace(/\.git$/, '')
      const pack = { repository: `https://github.com/${repository.replace(/\.git$/, '')}` }
      // Nodes of one pack that say different commits: the last one that says any.
      if (commit !== null || !found.has(name.toLowerCase())) add(name, commit === null ? pack : { ...pack, commit })
      if (commit === null) packsWithoutVersion.add(name)
    } else if (isName(id)) {
      add(id, told.take(known, { label: typeof version === 'string' ? `${id}@${version}` : id, version }))
    } else if (known !== null) add(known.id, told.take(known, { label: known.id, version: null }))
    else if (!isKnown(type)) unresolvedClasses.add(type)
  }
  if (found.size > MAX_ENTRIES)
    throw new BuildError('invalid_request', `the workflow names ${found.size} packs; at most ${MAX_ENTRIES} are taken`)
  const report = Object.entries({ unresolvedClasses, packsWithoutVersion })
  return {
    found: [...found.values()],
    report: { ...Object.fromEntries(report.map(([name, set]) => [name, [...set]])), ...told.report() },
  }
}

/** By the id that the node says; a version that the registry has no more is answered with the newest. Otherwise by its class. */
async function findInRegistry({ type, properties }: Node, { isKnown, packs, lookup }: KnownHere) {
  const { cnr_id: id, aux_id: repository, ver: version } = properties
  if (packs.has(type) || id === CORE || (typeof repository === 'string' && GITHUB.test(repository))) return null
  if (!isName(id)) return isKnown(type) ? null : lookup.findByClass(type)
  const exact = await findPublished(lookup, { registryId: id, version: isName(version) ? version : null })
  return exact ?? lookup.find(id, null)
}

/** What it says of itself; then, for names of files in its values, what the account had under this name. */
function resolveModels(workflow: Fields, nodes: readonly Node[], { models }: KnownHere): Resolved<DefinedModel> {
  const told = [workflow['models'], ...nodes.map(({ properties }) => properties['models'])]
  const found = new Map<string, DefinedModel>()
  for (const model of told
    .flatMap((list) => (Array.isArray(list) ? list : []))
    .filter(isRecord)
    .flatMap(toModel))
    if (found.size < MAX_ENTRIES) found.set(`${model.type}/${model.filename}`.toLowerCase(), model)
  const has = (name: string) => [...found.values()].some(({ filename }) => filename === name)
  const unmatched = new Set<string>()
  for (const name of nodes.flatMap(({ values }) => filesIn(values))) {
    const known = models.get(name)
    if (has(name)) continue
    if (known === undefined) unmatched.add(name)
    else if (found.size < MAX_ENTRIES) found.set(`${known.type}/${name}`.toLowerCase(), known)
  }
  const list = [...found.values()]
  return {
    found: list,
    report: {
      models: [
        ...list.map(({ filename }) => ({ filename, status: 'matched', suggestions: [] })),
        ...[...unmatched].map((filename) => ({ filename, status: 'unmatched', suggestions: [] })),
      ],
    },
  }
}

/** As templates write it; what could not be a model of a build is no model. */
function toModel({ name, url, directory, hash, hash_type: kind }: Fields): DefinedModel[] {
  const segments = typeof directory === 'string' ? directory.split('/') : []
  if (!isSegment(name) || segments.length === 0 || !segments.every(isSegment)) return []
  if (typeof url !== 'string' || url.length > 4096 || !URL.canParse(url)) return []
  const { protocol, username, password } = new URL(url)
  if (protocol !== 'https:' || username !== '' || password !== '') return []
  const isSha256 = /^sha-?256$/i.test(String(kind)) && /^[0-9a-f]{64}$/i.test(String(hash))
  const model = { type: segments.join('/'), filename: name, sourceUri: url }
  return [isSha256 ? { ...model, sha256: String(hash).toLowerCase() } : model]
}

/** The names of files of weights among the values of a node, without the folders that some of them have. */
function filesIn(values: unknown): string[] {
  const list = Array.isArray(values) ? values : isRecord(values) ? Object.values(values) : []
  return list.flatMap((value) => {
    const name = isName(value) ? (value.split(/[\\/]/).at(-1) ?? '') : ''
    return MODEL_FILE.test(name) ? [name] : []
  })
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= MAX_NAME
}

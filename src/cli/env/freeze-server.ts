/**
 * What a running ComfyUI server consists of, as far as it says: its version, its packs (their sources only where ComfyUI-Manager runs in
 * it), the names and sizes of its models. What it does not say is told, never guessed.
 */
import { toFields } from '../server/job-answers.ts'
import { CommandError, EXIT, toPrintable } from '../terminal.ts'
import type { ModelCandidates } from './env-api.ts'
import type { SpecDefinition, SpecModel } from './spec-file.ts'

export interface Found {
  readonly definition: SpecDefinition
  /** What could not be known, or was left out. */
  readonly remarks: readonly string[]
}

interface FreezeDeps {
  /** A snapshot of ComfyUI-Manager as a definition. */
  readonly resolveSnapshot: (snapshot: object) => Promise<Found>
  /** Addresses that releases of the account had these files from. */
  readonly resolveModels: (filenames: readonly string[]) => Promise<{ readonly results: readonly ModelCandidates[] }>
}

const ANSWER_WITHIN_MS = 60_000
// What a server with thousands of classes says.
const MAX_ANSWER_BYTES = 64 * 1024 * 1024
const MAX_FILES = 10_000
/** At a time, as the service takes them. */
const ASKED_AT_ONCE = 32
const SNAPSHOTS = ['/v2/snapshot/get_current', '/snapshot/get_current']
const OWN_MODULES = /^(?:nodes|comfy_extras\.|comfy_api_nodes\.)/

export async function freezeServer(address: string, { resolveSnapshot, resolveModels }: FreezeDeps): Promise<Found> {
  if (!URL.canParse(address) || !/^https?:$/.test(new URL(address).protocol))
    throw new CommandError(`--from-server ${JSON.stringify(address)} is not an http(s) address`, EXIT.usage)
  const base = address.replace(/\/+$/, '')
  const stats = await ask(base, '/system_stats')
  if (stats === null)
    throw new CommandError(toPrintable(`${base} does not answer as a ComfyUI server (/system_stats)`), EXIT.unreachable)
  const version = /^v?(\d+\.\d+\.\d+)/.exec(String(toFields(toFields(stats)['system'])['comfyui_version']))?.[1]
  const packs = readPackFolders(await ask(base, '/object_info'))
  const snapshot = await firstAnswer(base, SNAPSHOTS)
  const frozen: Found = snapshot === null ? { definition: {}, remarks: [] } : await resolveSnapshot(snapshot)
  const models = await readModels(base, resolveModels)
  const definition: SpecDefinition = {
    ...frozen.definition,
    ...((frozen.definition.baseComfyVersion ?? version) !== undefined && {
      baseComfyVersion: frozen.definition.baseComfyVersion ?? `v${version}`,
    }),
    models: models.known,
  }
  const named = new Set((definition.customNodes ?? []).map(({ name }) => name.toLowerCase()))
  const unsaid = packs.filter((name) => !named.has(name.toLowerCase()))
  return { definition, remarks: [...frozen.remarks, ...remarksOf({ unsaid, hasManager: snapshot !== null, models })] }
}

interface Unknown {
  readonly unsaid: readonly string[]
  readonly hasManager: boolean
  readonly models: FoundModels
}

function remarksOf({ unsaid, hasManager, models: { known, unknown, isListed } }: Unknown): string[] {
  return [
    ...(hasManager ? [] : ['ComfyUI-Manager does not answer there: neither packages nor sources of packs are known']),
    ...(unsaid.length === 0
      ? []
      : [`it runs packs whose source it does not say; add them to customNodes: ${unsaid.join(', ')}`]),
    ...(isListed ? [] : ['it does not list its models']),
    ...(known.length === 0 ? [] : ['models are known by name alone; their addresses are those of earlier releases']),
    ...unknown.map((model) => `no address is known of ${model}: add it to models, with sourceUri or after an upload`),
  ]
}

/** Folders below custom_nodes that brought a class. */
function readPackFolders(info: unknown): string[] {
  const modules = Object.values(toFields(info)).map((about) => String(toFields(about)['python_module'] ?? ''))
  const folders = modules
    .filter((module) => module.startsWith('custom_nodes.') && !OWN_MODULES.test(module))
    .map((module) => module.split('.')[1] ?? '')
  return [...new Set(folders)].filter((name) => name !== '' && name !== 'websocket_image_save').sort()
}

interface FoundModels {
  readonly known: readonly SpecModel[]
  /** `folder/name (size)`. */
  readonly unknown: readonly string[]
  readonly isListed: boolean
}

async function readModels(base: string, resolveModels: FreezeDeps['resolveModels']): Promise<FoundModels> {
  const folders = await ask(base, '/experiment/models')
  if (!Array.isArray(folders)) return { known: [], unknown: [], isListed: false }
  const files: { readonly type: string; readonly filename: string; readonly size: number | null }[] = []
  for (const { name: folder } of folders.map(toFields)) {
    if (typeof folder !== 'string' || folder === 'configs' || folder === 'custom_nodes') continue
    const listed = await ask(base, `/experiment/models/${encodeURIComponent(folder)}`)
    for (const { name, size } of (Array.isArray(listed) ? listed : []).map(toFields)) {
      if (typeof name !== 'string' || files.length >= MAX_FILES) continue
      const parts = `${folder}/${name.replaceAll('\\', '/')}`.split('/')
      files.push({
        type: parts.slice(0, -1).join('/'),
        filename: parts.at(-1) ?? '',
        size: typeof size === 'number' ? size : null,
      })
    }
  }
  const candidates = new Map<string, ModelCandidates['candidates']>()
  for (let at = 0; at < files.length; at += ASKED_AT_ONCE) {
    const { results } = await resolveModels(files.slice(at, at + ASKED_AT_ONCE).map(({ filename }) => filename))
    for (const { filename, candidates: found } of results) candidates.set(filename, found)
  }
  const known: SpecModel[] = []
  const unknown: string[] = []
  for (const { type, filename, size } of files) {
    const found = candidates.get(filename)?.find((each) => each.type === type)
    if (found !== undefined) known.push({ type, filename, sourceUri: found.sourceUri, sha256: found.sha256 })
    else unknown.push(`${type}/${filename}${size === null ? '' : ` (${size} bytes)`}`)
  }
  return { known, unknown, isListed: true }
}

async function firstAnswer(base: string, paths: readonly string[]): Promise<object | null> {
  for (const path of paths) {
    const answer = await ask(base, path)
    if (typeof answer === 'object' && answer !== null && !Array.isArray(answer)) return answer
  }
  return null
}

/** null: it does not answer, or with something else than JSON. */
async function ask(base: string, path: string): Promise<unknown> {
  try {
    const answer = await fetch(base + path, { signal: AbortSignal.timeout(ANSWER_WITHIN_MS) })
    if (!answer.ok || answer.body === null) return null
    const parts: Uint8Array[] = []
    let bytes = 0
    for await (const part of answer.body) {
      bytes += part.byteLength
      if (bytes > MAX_ANSWER_BYTES) return null
      parts.push(part)
    }
    return JSON.parse(Buffer.concat(parts).toString('utf8'))
  } catch {
    return null
  }
}

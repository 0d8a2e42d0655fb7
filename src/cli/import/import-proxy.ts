/** Brings what the official comfy-api-proxy kept: the workflows of its jobs, and its uploads out of ComfyUI's folders. */

import { copyFile, mkdtemp, realpath, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { DatabaseSync, type SQLOutputValue } from 'node:sqlite'
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../lib/json/lossless-json.ts'
import { CommandError, EXIT } from '../terminal.ts'
import type { ImportTarget } from './import-comfyui.ts'
import { bringCarried } from './saved-workflows.ts'
import { toReadFailure } from './walk-folder.ts'

interface ProxySource {
  /** Of its `--state-dir`. */
  readonly folder: string
  /** ComfyUI's base folder, where the bytes of uploads are; null: they are not brought. */
  readonly comfyFolder: string | null
  readonly maxFileBytes: number
}

export async function importProxy(source: ProxySource, target: ImportTarget): Promise<void> {
  const { jobs, assets } = await readProxyState(source.folder)
  const carriers = jobs.map((job) => ({ name: job.id, madeAt: job.createdAt, readTexts: () => [toText(job, assets)] }))
  const { saved, report } = target
  await bringCarried(carriers, { folder: 'from proxy', remark: 'jobs have no graph', saved, report })
  await bringAssets(assets, source, target)
}

function toText({ workflow }: ProxyJob, assets: readonly ProxyAsset[]): string {
  try {
    return stringifyLosslessJson(withNames(parseLosslessJson(workflow), assets))
  } catch (error) {
    throw new Error(`has a graph that is not valid JSON: ${(error as Error).message}`)
  }
}

async function bringAssets(
  assets: readonly ProxyAsset[],
  { comfyFolder, maxFileBytes }: ProxySource,
  { files, report }: ImportTarget,
): Promise<void> {
  const inputs = assets.filter(({ place }) => place?.folder === 'input')
  for (let others = assets.length - inputs.length; others > 0; others--)
    report.passOver('assets are weights or outputs and stay where they are')
  if (comfyFolder === null) {
    const reason = `lie in ComfyUI's folder; name it with --comfyui`
    if (inputs.length > 0) report.refuse({ name: `${inputs.length} uploads`, reason })
    return
  }
  const folder = path.join(comfyFolder, 'input')
  for (const { place, hash } of inputs) {
    const name = place?.name ?? ''
    const shown = `input/${name}`
    const found = await findInside(folder, name)
    if ('reason' in found) report.refuse({ name: shown, reason: found.reason })
    else if (found.sizeBytes > maxFileBytes) report.refuse({ name: shown, reason: 'is larger than --max-file allows' })
    else
      report.note(
        'inputs',
        shown,
        await files.place(found.file, { folder: 'input', name, ...(hash === null ? {} : { hash }) }),
      )
  }
}

/** The names come out of a file that anybody may have written. */
async function findInside(
  folder: string,
  name: string,
): Promise<{ readonly file: string; readonly sizeBytes: number } | { readonly reason: string }> {
  try {
    const [root, file] = await Promise.all([realpath(folder), realpath(path.join(folder, name))])
    if (!file.startsWith(root + path.sep)) return { reason: 'leads out of its folder' }
    const { size, isFile } = await stat(file).then((found) => ({ size: found.size, isFile: found.isFile() }))
    return isFile ? { file, sizeBytes: size } : { reason: 'is no file' }
  } catch (error) {
    return { reason: toReadFailure(error) }
  }
}

interface ProxyJob {
  readonly id: string
  readonly createdAt: Date
  /** JSON. */
  readonly workflow: string
}

interface ProxyAsset {
  readonly id: string
  /** Plain hex; null where the proxy never made one. */
  readonly hash: string | null
  /** Where ComfyUI has it: a folder such as `input`, and the name within. null: a file of weights, or one elsewhere on the disk. */
  readonly place: { readonly folder: string; readonly name: string } | null
  readonly filePath: string | null
}

interface ProxyState {
  readonly jobs: readonly ProxyJob[]
  readonly assets: readonly ProxyAsset[]
}

const FILE = 'state.sqlite3'
const MAX_STATE_BYTES = 2 * 1024 ** 3
const MAX_ROWS = 20_000

/** `given`: the folder of `--state-dir`. */
async function readProxyState(given: string): Promise<ProxyState> {
  const file = path.join(given, FILE)
  const size = (await stat(file).catch(() => null))?.size ?? null
  if (size === null)
    throw new CommandError(`${given} has no ${FILE}: the proxy keeps one in the folder of its --state-dir`, EXIT.usage)
  if (size > MAX_STATE_BYTES) throw new CommandError(`${file} is larger than 2 GiB`, EXIT.usage)
  const folder = await mkdtemp(path.join(tmpdir(), 'atelier-import-'))
  try {
    const copy = path.join(folder, FILE)
    await copyFile(file, copy)
    // SQLite's write-ahead log holds changes that are not in the file itself yet.
    await copyFile(`${file}-wal`, `${copy}-wal`).catch(() => {})
    return readCopy(copy)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

type Row = Record<string, SQLOutputValue>

function readCopy(file: string): ProxyState {
  try {
    using database = new DatabaseSync(file)
    const all = (sql: string) => database.prepare(`${sql} LIMIT ${MAX_ROWS}`).all() as Row[]
    return {
      jobs: all('SELECT id, created_at, workflow FROM jobs ORDER BY created_at DESC').map((row) => ({
        id: String(row['id']),
        createdAt: new Date(String(row['created_at'])),
        workflow: String(row['workflow']),
      })),
      assets: all('SELECT id, hash, file_path, comfy_ref FROM assets ORDER BY created_at').map(toAsset),
    }
  } catch (error) {
    throw new CommandError(`the state of the proxy cannot be read: ${(error as Error).message}`, EXIT.failed)
  }
}

function toAsset(row: Row): ProxyAsset {
  const hash = /^blake3:([0-9a-f]{64})$/i.exec(String(row['hash']))?.[1].toLowerCase() ?? null
  const filePath = typeof row['file_path'] === 'string' ? row['file_path'] : null
  return { id: String(row['id']), hash, filePath, place: toPlace(row['comfy_ref']) }
}

/** `{filename, subfolder, type}`, as ComfyUI's `/view` takes it. */
function toPlace(text: SQLOutputValue | undefined): ProxyAsset['place'] {
  const reference = typeof text === 'string' ? tryParse(text) : null
  if (!isJsonObject(reference) || typeof reference['filename'] !== 'string') return null
  const { filename, subfolder, type } = reference
  return {
    folder: typeof type === 'string' ? type : 'input',
    name: typeof subfolder === 'string' && subfolder !== '' ? `${subfolder}/${filename}` : filename,
  }
}

function tryParse(text: string): JsonValue {
  try {
    return parseLosslessJson(text)
  } catch {
    return null
  }
}

/** The graph with the names of files in the place of the proxy's own ids, which mean nothing elsewhere. */
function withNames(workflow: JsonValue, assets: readonly ProxyAsset[]): JsonValue {
  const names = new Map<string, string>()
  for (const { id, hash, place, filePath } of assets) {
    const name = place?.name ?? filePath
    if (name === null) continue
    names.set(id, name)
    if (hash !== null) names.set(`blake3:${hash}`, name)
  }
  const replace = (value: JsonValue): JsonValue => {
    if (Array.isArray(value)) return value.map(replace)
    if (!isJsonObject(value)) return value
    if (value['__type'] === 'core/ASSET') return nameOf(value['info'], names) ?? value
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, replace(one)])) as JsonObject
  }
  return replace(workflow)
}

function nameOf(info: JsonValue | undefined, names: ReadonlyMap<string, string>): string | null {
  if (!isJsonObject(info)) return null
  const [id, hash] = [String(info['id']), String(info['hash']).toLowerCase()]
  return names.get(id) ?? names.get(hash) ?? nameOfOutput(id)
}

/** The proxy's ids of outputs say themselves which file they mean: `asset_<base64url of JSON>.<signature>`. */
function nameOfOutput(id: string): string | null {
  const payload = /^asset_([\w-]+)\./.exec(id)?.[1]
  const file = payload === undefined ? null : tryParse(Buffer.from(payload, 'base64url').toString('utf8'))
  if (!isJsonObject(file) || typeof file['f'] !== 'string') return null
  const { f: name, s: subfolder, t: type } = file
  const full = typeof subfolder === 'string' && subfolder !== '' ? `${subfolder}/${name}` : name
  return type === 'input' ? full : `${full} [${type === 'temp' ? 'temp' : 'output'}]`
}

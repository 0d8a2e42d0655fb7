/**
 * A node's UI output as a report: items that name a file become files to be read from the server, everything else stays a value.
 * Files in the attempt's own folder are renumbered as everywhere in the service, so that no other job of the account has the same
 * name. The same file keeps its name however often it is reported, and files that share a stem on the server still do.
 */

import type { NodeReport, ReportedFile, ReportedItem } from '../../../../../engine/graph/run-event.ts'
import { isMediaType, typeFromName } from '../../../../../lib/files/mime.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../../../lib/json/lossless-json.ts'
import { sleep } from '../../../../../lib/waiting/sleep.ts'
import { EngineLostError } from '../../../../domain/engine/engine-lost-error.ts'
import type { EngineRun } from '../../../../domain/engine/engine-port.ts'
import type { ComfyBounds } from '../comfy-bounds.ts'
import { restoreFile } from '../metadata/restore-file.ts'
import type { RewrittenNames } from '../metadata/rewritten-names.ts'
import { toGivenName, withoutFolder } from '../run/rewrite-graph.ts'
import type { ComfyApi, FileLocation } from '../wire/comfy-api.ts'
import type { OutputCleanup } from './output-cleanup.ts'
import { readOutput } from './read-output.ts'

interface ReporterDeps {
  readonly api: ComfyApi
  readonly bounds: ComfyBounds
  readonly reserveOutputNumbers: EngineRun['reserveOutputNumbers']
  /** The names that were rewritten for the server: the metadata of files gets the caller's names back. */
  names(): RewrittenNames
  /** The attempt's own folder within the output folder. */
  readonly folder: string
  /** It is told of every file. */
  readonly cleanup: Pick<OutputCleanup, 'reported' | 'released' | 'isRemoved'>
  /** An earlier attempt failed, perhaps at reading outputs: the server is asked whether a file exists before it is reported. */
  readonly isDoubted: boolean
  /** Whether the server has certainly not been restarted since it got the run: one that was has lost what it had not kept on disk. */
  isSameServer(): boolean
  readonly onUnreadable: (error: unknown) => void
}

export type ToReport = (output: JsonObject) => Promise<NodeReport>

interface ShownName {
  readonly filename: string
  readonly subfolder: string
}

interface FoundFile extends FileLocation {
  readonly assetId: string | null
  readonly contentType: string | null
}

// `name_00001_.png`, and the few savers that leave the last underscore out.
const NUMBERED = /^(.*)_(\d{5,})(_?\.\w{1,16})$/
const OK = 200
const SERVER_FAULT = 500
/** The folders that a file can be in. An item that names none of them need not be a file. */
const FOLDERS: ReadonlySet<unknown> = new Set(['output', 'temp', 'input'])
const SCENE = /\.(?:obj|fbx|gltf|glb|usdz|stl|ply|splat|ksplat|spz)$/i
/** Keys under which a plain text may be the path of a 3D scene. */
const SCENE_KEYS: ReadonlySet<string> = new Set(['3d', 'result'])

export function createReporter(deps: ReporterDeps): ToReport {
  const { api, bounds, cleanup } = deps
  const names = new ShownNames(deps)

  return async function toReport(output) {
    const report: [string, readonly ReportedItem[]][] = []
    for (const [key, value] of Object.entries(output)) {
      const items = await Promise.all((Array.isArray(value) ? value : [value]).map((item) => readItem(key, item)))
      await names.give(items.filter(isFile))
      report.push([key, items.map((item) => (isFile(item) ? toReportedFile(item) : { kind: 'value', value: item }))])
    }
    return Object.fromEntries(report)
  }

  async function readItem(key: string, item: JsonValue): Promise<FoundFile | JsonValue> {
    if (isJsonObject(item) && typeof item.filename === 'string' && item.filename !== '') {
      const file = toFile(item)
      if (!FOLDERS.has(item.type)) return (await ask(file)) === OK ? file : item
      return deps.isDoubted && (await isAbsent(file)) ? item : file
    }
    if (typeof item !== 'string' || !SCENE_KEYS.has(key) || !SCENE.test(item)) return item
    const location = locationOfPath(item)
    return (await ask(location)) === OK ? { ...location, assetId: null, contentType: typeFromName(item) } : item
  }

  /** The status of the answer. Asks several times, since a file may appear late. */
  async function ask(location: FileLocation): Promise<number> {
    for (let attempt = 1; ; attempt++) {
      const status = await statusOf(location)
      if (status === OK) return status
      if (attempt < bounds.fileTries) await sleep(bounds.fileRetryMs)
      else if (status !== null) return status
      else throw cannotTell(location, 'it does not answer')
    }
  }

  /** A server that dies, or fails at the question, has not said that there is no such file: the job must not end without it. */
  async function isAbsent(file: FileLocation): Promise<boolean> {
    const status = await ask(file)
    if (status === OK) return false
    if (status >= SERVER_FAULT) throw cannotTell(file, `it answers ${status}`)
    if (!deps.isSameServer()) throw cannotTell(file, `it answers ${status}, and may have been restarted`)
    return true
  }

  async function statusOf(location: FileLocation): Promise<number | null> {
    try {
      const { status, body } = await api.head(location, {})
      body.destroy()
      return status
    } catch {
      return null
    }
  }

  function toReportedFile(file: FoundFile): ReportedFile {
    const { filename, subfolder } = names.of(file)
    const { contentType } = file
    cleanup.reported(file)
    const read = () => {
      const bytes = readOutput(api, file, bounds)
      return file.folder === 'input' ? bytes : restoreFile(bytes, file.filename, deps.names())
    }
    function mustBeThere(): void {
      if (cleanup.isRemoved(file))
        throw new EngineLostError('output_unreadable', 'an output was removed from the engine before it was kept')
    }
    return {
      kind: 'file',
      filename,
      subfolder,
      folder: file.folder,
      contentType,
      read: () => readWatched({ read, mustBeThere, onUnreadable: deps.onUnreadable }),
      release: () => void cleanup.released(file),
    }
  }
}

/** Under which names the files of an attempt are shown. */
class ShownNames {
  readonly #folder: string
  readonly #reserveNumbers: ReporterDeps['reserveOutputNumbers']
  readonly #named = new Map<string, ShownName>()
  /** By the stem of a file on the server: its number here. */
  readonly #numbers = new Map<string, number>()

  constructor({ folder, reserveOutputNumbers }: Pick<ReporterDeps, 'folder' | 'reserveOutputNumbers'>) {
    this.#folder = folder
    this.#reserveNumbers = reserveOutputNumbers
  }

  of(file: FoundFile): ShownName {
    return this.#named.get(keyOf(file)) ?? file
  }

  /** In the order in which they were reported, with one reservation of numbers for all files of one name. */
  async give(files: readonly FoundFile[]): Promise<void> {
    const folder = this.#folder
    const fresh = files.filter((file) => !this.#named.has(keyOf(file)))
    const groups = Map.groupBy(fresh, (file) => {
      const isOwn = file.folder === 'output' && (file.subfolder === folder || file.subfolder.startsWith(`${folder}/`))
      const base = isOwn ? NUMBERED.exec(file.filename)?.[1] : undefined
      return base === undefined ? null : `${file.subfolder}\n${base}`
    })
    for (const [group, members] of groups) {
      const distinct = [...new Map(members.map((file) => [keyOf(file), file])).values()]
      if (group === null)
        for (const file of distinct)
          this.#named.set(keyOf(file), { ...file, subfolder: withoutFolder(file.subfolder, folder) })
      else await this.#renumber(distinct)
    }
  }

  async #renumber(files: readonly FoundFile[]): Promise<void> {
    const [first] = files
    if (first === undefined) return
    const subfolder = withoutFolder(first.subfolder, this.#folder)
    const base = NUMBERED.exec(first.filename)?.[1] ?? ''
    const stems = files.map((file) => `${file.subfolder}\n${base}\n${NUMBERED.exec(file.filename)?.[2]}`)
    const fresh = [...new Set(stems)].filter((stem) => !this.#numbers.has(stem))
    const name = toGivenName(base)
    const start = fresh.length === 0 ? 0 : await this.#reserveNumbers(subfolder, name, fresh.length)
    for (const [index, stem] of fresh.entries()) this.#numbers.set(stem, start + index)
    for (const [index, file] of files.entries()) {
      const number = String(this.#numbers.get(stems[index] ?? '')).padStart(5, '0')
      const ending = NUMBERED.exec(file.filename)?.[3] ?? ''
      this.#named.set(keyOf(file), { filename: `${name}_${number}${ending}`, subfolder })
    }
  }
}

interface WatchedRead {
  read(): AsyncIterable<Uint8Array>
  /** Throws once the file was removed. */
  mustBeThere(): void
  onUnreadable(error: unknown): void
}

async function* readWatched({ read, mustBeThere, onUnreadable }: WatchedRead): AsyncGenerator<Uint8Array> {
  try {
    mustBeThere()
    yield* read()
    // It may have been emptied under the reader.
    mustBeThere()
  } catch (error) {
    onUnreadable(error)
    throw error
  }
}

function cannotTell({ filename }: FileLocation, why: string): EngineLostError {
  return new EngineLostError('output_unreadable', `the engine cannot be asked for the output ${filename}: ${why}`)
}

function isFile(item: FoundFile | JsonValue): item is FoundFile {
  return typeof item === 'object' && item !== null && 'assetId' in item && 'folder' in item
}

function toFile(item: JsonObject): FoundFile {
  const filename = String(item.filename)
  const told = [item.content_type, item.mime_type, item.format].find(
    (type) => typeof type === 'string' && isMediaType(type),
  )
  return {
    filename,
    subfolder: typeof item.subfolder === 'string' ? item.subfolder.replaceAll('\\', '/') : '',
    folder: item.type === 'temp' || item.type === 'input' ? item.type : 'output',
    // The name is more reliable than the key (videos are reported as images) and than types such as `video/h264-mp4`.
    contentType: typeFromName(filename) ?? (typeof told === 'string' ? told : null),
    assetId: typeof item.id === 'string' ? item.id : null,
  }
}

function locationOfPath(path: string): FileLocation {
  const clean = path.replaceAll('\\', '/')
  const cut = clean.lastIndexOf('/')
  return { filename: clean.slice(cut + 1), subfolder: clean.slice(0, Math.max(0, cut)), folder: 'output' }
}

function keyOf({ folder, subfolder, filename }: FileLocation): string {
  return `${folder}\n${subfolder}\n${filename}`
}

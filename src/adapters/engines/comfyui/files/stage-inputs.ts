/**
 * Uploads the input files of a run to the server, each once. They are named by content, so that equal files of different jobs are
 * one file there and the server's cache finds what it has computed from it. Uploads are remembered as long as the server process
 * lives; after that the server is asked first whether it still has the file.
 */
import { posix } from 'node:path'
import type { NodeCatalog } from '../../../../../engine/graph/node-catalog.ts'
import { extensionFromType } from '../../../../../lib/files/mime.ts'
import { isJsonObject } from '../../../../../lib/json/lossless-json.ts'
import { sleep } from '../../../../../lib/waiting/sleep.ts'
import type { EngineInput, EngineRun } from '../../../../domain/engine/engine-port.ts'
import type { ComfyBounds } from '../comfy-bounds.ts'
import { escapeJson } from '../metadata/rewritten-names.ts'
import type { Refusal } from '../run/graph-refusal.ts'
import { namesToUpload } from '../run/rewrite-graph.ts'
import { type ComfyApi, type FileLocation, writeUpload } from '../wire/comfy-api.ts'
import { CallError } from '../wire/comfy-http.ts'
import type { Remover } from './output-cleanup.ts'

const { basename, extname } = posix

/** The folder within the server's input folder. */
const FOLDER = 'atelier'
const ANNOTATION = / \[(?:input|output|temp)\]$/
/** A path segment that stays in the same folder. */
const HERE = './'
const MAX_PATH_BYTES = 1_000
const EXTENSION = /^\.\w{1,16}$/

export class InputTooLargeError extends Error {
  constructor(sizeBytes: number, limitBytes: number) {
    super(`an input of ${sizeBytes} bytes is larger than the engine takes (${limitBytes} bytes, its max_upload_size)`)
    this.name = 'InputTooLargeError'
  }
}

interface StageDeps {
  readonly api: ComfyApi
  readonly bounds: ComfyBounds
  readonly remover: Pick<Remover, 'removeFile'>
  /** The largest upload that the server accepts; null: not known. */
  maxUploadBytes(): number | null
}

export class Stage {
  readonly #deps: StageDeps
  /** By name on the server, the one used longest ago first. */
  readonly #kept = new Map<string, { users: number; path: string | null }>()
  readonly #removals = new Map<string, Promise<void>>()
  /** By name on the server; several runs that need the same file wait for one upload. */
  #uploads = new Map<string, Promise<string>>()
  #subfolder = FOLDER

  constructor(deps: StageDeps) {
    this.#deps = deps
  }

  /** The names on the server by the names in the graph. Throws CallError or InputTooLargeError. */
  async upload(inputs: ReadonlyMap<string, EngineInput>, signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
    const wanted = new Map([...inputs].map(([name, input]) => [name, [stagedName(name, input), input] as const]))
    for (const [filename] of wanted.values()) this.#use(filename)
    try {
      return await this.#uploadAll(wanted, signal)
    } catch (error) {
      this.#releaseNames([...wanted.values()].map(([filename]) => filename))
      throw error
    }
  }

  /** The run no longer needs these files. When there are too many, those used longest ago are removed. */
  release(staged: ReadonlyMap<string, string>): void {
    this.#releaseNames([...staged.values()].map((path) => basename(path)))
  }

  /** The server may have lost its files. */
  forget(): void {
    this.#uploads = new Map()
  }

  /**
   * From now on files go directly into the input folder. Nodes of other authors often accept only files that are listed there,
   * and do not look into subfolders. This is not the default because thousands of files in these lists make the server slow.
   */
  flatten(): void {
    this.#subfolder = ''
    this.#uploads = new Map()
  }

  /** Uploading a file twice does no harm: its name stands for its content. */
  async #uploadWithRetries(filename: string, input: EngineInput, signal: AbortSignal): Promise<string> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#uploadIfMissing(filename, input, signal)
      } catch (error) {
        const mayPass = error instanceof CallError && error.fault !== 'aborted' && !signal.aborted
        if (!mayPass || attempt >= this.#deps.bounds.fileTries) throw error
        await sleep(this.#deps.bounds.fileRetryMs * 2 ** (attempt - 1), signal)
      }
    }
  }

  async #uploadIfMissing(filename: string, input: EngineInput, signal: AbortSignal): Promise<string> {
    const location = { filename, subfolder: this.#subfolder, folder: 'input' } as const
    if (await this.#isThere(location, input, signal)) return toPath(this.#subfolder, filename)
    const limit = this.#deps.maxUploadBytes()
    if (limit !== null && input.sizeBytes > limit) throw new InputTooLargeError(input.sizeBytes, limit)
    return this.#upload(filename, input, signal)
  }

  async #isThere(location: FileLocation, input: EngineInput, signal: AbortSignal): Promise<boolean> {
    const { status, headers, body } = await this.#deps.api.head(location, { signal })
    body.destroy()
    return status === 200 && Number(headers['content-length']) === input.sizeBytes
  }

  async #upload(filename: string, input: EngineInput, signal: AbortSignal): Promise<string> {
    const { api, bounds } = this.#deps
    const form = writeUpload({ filename, subfolder: this.#subfolder, folder: 'input' }, input)
    const answer = await api.http.json('/upload/image', {
      method: 'POST',
      headers: form.headers,
      body: form.body,
      // A slow connection must not be cut off while bytes move: a second for every 64 KiB, plus the bound for pauses.
      deadlineMs: bounds.uploadIdleMs + Math.ceil(input.sizeBytes / 65.536),
      maxBytes: bounds.maxAnswerBytes,
      signal,
    })
    if (!isJsonObject(answer) || typeof answer.name !== 'string') {
      throw new CallError('malformed', '/upload/image: the answer names no file')
    }
    return toPath(typeof answer.subfolder === 'string' ? answer.subfolder : this.#subfolder, answer.name)
  }

  /** Called before anything is awaited, so that a file which is being uploaded is not removed to make room. */
  #use(filename: string): void {
    const { users = 0, path = null } = this.#kept.get(filename) ?? {}
    this.#kept.delete(filename)
    this.#kept.set(filename, { users: users + 1, path })
  }

  #releaseNames(filenames: Iterable<string>): void {
    for (const filename of filenames) {
      const entry = this.#kept.get(filename)
      if (entry !== undefined) entry.users--
    }
    for (const [filename, { users, path }] of this.#kept) {
      if (this.#kept.size <= this.#deps.bounds.maxStagedFiles) return
      if (users <= 0) this.#remove(filename, path)
    }
  }

  #remove(filename: string, path: string | null): void {
    this.#kept.delete(filename)
    this.#uploads.delete(filename)
    if (path === null) return
    const folder = path.slice(0, Math.max(0, path.lastIndexOf('/')))
    const gone = this.#deps.remover
      .removeFile({ filename: basename(path), subfolder: folder, folder: 'input' })
      .finally(() => this.#removals.delete(filename))
    this.#removals.set(filename, gone)
  }

  async #uploadAll(
    wanted: ReadonlyMap<string, readonly [filename: string, input: EngineInput]>,
    signal: AbortSignal,
  ): Promise<Map<string, string>> {
    const staged = new Map<string, string>()
    const taken = new Set<string>()
    for (const [name, [filename, input]] of wanted) {
      const path = await this.#uploadShared(filename, input, signal).catch((error) => {
        // Another run had started this upload and was aborted; this run still needs the file.
        if (!(error instanceof CallError) || error.fault !== 'aborted' || signal.aborted) throw error
        return this.#uploadShared(filename, input, signal)
      })
      const entry = this.#kept.get(filename)
      if (entry !== undefined) entry.path = path
      staged.set(name, spell(path, name, taken))
    }
    return staged
  }

  #uploadShared(filename: string, input: EngineInput, signal: AbortSignal): Promise<string> {
    const known = this.#uploads.get(filename)
    if (known !== undefined) return known
    const current = this.#uploads
    const gone = this.#removals.get(filename)
    const work =
      gone === undefined
        ? this.#uploadWithRetries(filename, input, signal)
        : gone.then(() => this.#uploadWithRetries(filename, input, signal))
    current.set(filename, work)
    work.catch(() => current.delete(filename))
    return work
  }
}

/** The path of a file as a graph names it. */
function toPath(subfolder: string, filename: string): string {
  return subfolder === '' ? filename : `${subfolder.replaceAll('\\', '/')}/${filename}`
}

function stagedName(name: string, { hash, contentType }: EngineInput): string {
  const written = extname(name.replace(ANNOTATION, ''))
  const extension = EXTENSION.test(written) ? written.toLowerCase() : `.${extensionFromType(contentType) ?? 'bin'}`
  return `${hash}${extension}`
}

/**
 * The path as it is written into the graph of this run. Every name of the graph gets a text of its own, even when two names mean
 * the same bytes, and none that is shorter than the name: so the names in the graph that the server writes into its files can be
 * restored in place. A file directly in the input folder keeps its plain name, for nodes that compare it with a list.
 */
function spell(path: string, name: string, taken: Set<string>): string {
  const cut = path.lastIndexOf('/') + 1
  const missing = Math.min(escapeJson(name).length, MAX_PATH_BYTES) - path.length
  let spelled =
    cut === 0 || missing <= 0
      ? path
      : path.slice(0, cut) + HERE.repeat(Math.ceil(missing / HERE.length)) + path.slice(cut)
  while (cut > 0 && taken.has(spelled)) spelled = spelled.slice(0, cut) + HERE + spelled.slice(cut)
  taken.add(spelled)
  return spelled
}

/** The inputs of one run on its server: uploaded before each submit, and uploaded in another way when the server does not find them. */
interface RunInputsDeps {
  readonly stage: Stage
  readonly catalog: NodeCatalog
}

export class RunInputs {
  readonly #stage: Stage
  readonly #wanted: EngineRun['inputs']
  #names: ReadonlyMap<string, string> = new Map()
  #isUploadedAgain = false

  constructor({ stage, catalog }: RunInputsDeps, { graph, inputs }: Pick<EngineRun, 'graph' | 'inputs'>) {
    const names = namesToUpload(graph, catalog, new Set(inputs.keys()))
    this.#stage = stage
    this.#wanted = new Map([...inputs].filter(([name]) => names.has(name)))
  }

  /** Their names on the server, by the names in the graph. */
  get names(): ReadonlyMap<string, string> {
    return this.#names
  }

  get isEmpty(): boolean {
    return this.#wanted.size === 0
  }

  async upload(signal: AbortSignal): Promise<void> {
    const staged = await this.#stage.upload(this.#wanted, signal)
    this.release()
    this.#names = staged
  }

  release(): void {
    this.#stage.release(this.#names)
  }

  /** True when the refusal is about files that we uploaded, and they can be uploaded in another way. */
  mayUploadAgain({ isAboutFiles, unknownChoices }: Refusal): boolean {
    const staged = new Set(this.#names.values())
    if (this.#isUploadedAgain || staged.size === 0) return false
    this.#isUploadedAgain = true
    const isNoChoice = unknownChoices.some((name) => staged.has(name))
    if (isNoChoice) this.#stage.flatten()
    else if (isAboutFiles) this.#stage.forget()
    return isNoChoice || isAboutFiles
  }
}

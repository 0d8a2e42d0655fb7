/**
 * Brings the files of a run to the server, each once: named by content, so that equal files of different jobs are one file
 * there and the server's own cache finds what it has computed from it. What has been brought is remembered for as long as
 * the server process lives; after that it is asked first.
 */
import { posix } from 'node:path'
import { isJsonObject } from '../../../../../lib/json/lossless-json.ts'
import { extensionFromType } from '../../../../../lib/mime.ts'
import { sleep } from '../../../../../lib/sleep.ts'
import type { EngineInput } from '../../../../domain/engine/engine.ts'
import type { ComfyBounds } from '../comfy-bounds.ts'
import { escapeJson } from '../metadata/rewritten-names.ts'
import { type ComfyApi, writeUpload } from '../wire/comfy-api.ts'
import { CallError } from '../wire/comfy-http.ts'
import type { Remover } from './remove-files.ts'

const { basename, extname } = posix

/** The folder within the server's input folder. */
const FOLDER = 'atelier'
const ANNOTATION = / \[(?:input|output|temp)\]$/
/** Leads from a folder to itself. */
const HERE = './'
const MAX_PATH_BYTES = 1_000
const EXTENSION = /^\.\w{1,16}$/

export class InputTooLargeError extends Error {
  constructor(sizeBytes: number, limitBytes: number) {
    super(`an input of ${sizeBytes} bytes is larger than the engine takes (${limitBytes} bytes, its max_upload_size)`)
    this.name = 'InputTooLargeError'
  }
}

export interface Stage {
  /** Staged names by the names that stand in the graph. Throws CallError or InputTooLargeError. */
  bring(inputs: ReadonlyMap<string, EngineInput>, signal: AbortSignal): Promise<ReadonlyMap<string, string>>
  /** The files of a run are no longer needed for it: those used longest ago make room when there are too many. */
  letGo(staged: ReadonlyMap<string, string>): void
  /** The server may have lost what it was given. */
  forget(): void
  /**
   * From now on beside the user's own files. Nodes of other authors often offer only those as a choice, and look neither into
   * folders nor at the file itself. Not so from the start: thousands of files in these lists make the server slow.
   */
  flatten(): void
}

export interface StageDeps {
  readonly api: ComfyApi
  readonly bounds: ComfyBounds
  readonly remover: Pick<Remover, 'removeFile'>
  /** null: not known. */
  maxUploadBytes(): number | null
}

export function createStage({ api, bounds, remover, maxUploadBytes }: StageDeps): Stage {
  /** By staged name, the one used longest ago first. */
  const kept = new Map<string, { users: number; path: string | null }>()
  const going = new Map<string, Promise<void>>()

  /** By staged name; several runs that need the same file wait for one upload. */
  let brought = new Map<string, Promise<string>>()
  let subfolder = FOLDER

  /** Bringing a file twice does no harm: its name stands for its content. */
  async function bringOne(filename: string, input: EngineInput, signal: AbortSignal): Promise<string> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await tryOne(filename, input, signal)
      } catch (error) {
        const mayPass = error instanceof CallError && error.fault !== 'aborted' && !signal.aborted
        if (!mayPass || attempt >= bounds.fileTries) throw error
        await sleep(bounds.fileRetryMs * 2 ** (attempt - 1), signal)
      }
    }
  }

  async function tryOne(filename: string, input: EngineInput, signal: AbortSignal): Promise<string> {
    const place = { filename, subfolder, folder: 'input' } as const
    if (await isThere(place, input, signal)) return toPath(subfolder, filename)
    const limit = maxUploadBytes()
    if (limit !== null && input.sizeBytes > limit) throw new InputTooLargeError(input.sizeBytes, limit)
    return upload(filename, input, signal)
  }

  async function isThere(
    place: Parameters<ComfyApi['head']>[0],
    input: EngineInput,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { status, headers, body } = await api.head(place, { signal })
    body.destroy()
    return status === 200 && Number(headers['content-length']) === input.sizeBytes
  }

  async function upload(filename: string, input: EngineInput, signal: AbortSignal): Promise<string> {
    const form = writeUpload({ filename, subfolder, folder: 'input' }, input)
    const answer = await api.http.json('/upload/image', {
      method: 'POST',
      headers: form.headers,
      body: form.body,
      // A slow line must not be cut off while it moves: a second for every 64 KiB, and the bound for pauses on top.
      deadlineMs: bounds.uploadIdleMs + Math.ceil(input.sizeBytes / 65.536),
      maxBytes: bounds.maxAnswerBytes,
      signal,
    })
    if (!isJsonObject(answer) || typeof answer.name !== 'string') {
      throw new CallError('malformed', '/upload/image: the answer names no file')
    }
    return toPath(typeof answer.subfolder === 'string' ? answer.subfolder : subfolder, answer.name)
  }

  /** Before anything is awaited: what is being brought must not be made room of. */
  function use(filename: string): void {
    const { users = 0, path = null } = kept.get(filename) ?? {}
    kept.delete(filename)
    kept.set(filename, { users: users + 1, path })
  }

  function letGo(filenames: Iterable<string>): void {
    for (const filename of filenames) {
      const entry = kept.get(filename)
      if (entry !== undefined) entry.users--
    }
    for (const [filename, { users, path }] of kept) {
      if (kept.size <= bounds.maxStagedFiles) return
      if (users <= 0) remove(filename, path)
    }
  }

  function remove(filename: string, path: string | null): void {
    kept.delete(filename)
    brought.delete(filename)
    if (path === null) return
    const folder = path.slice(0, Math.max(0, path.lastIndexOf('/')))
    const gone = remover
      .removeFile({ filename: basename(path), subfolder: folder, folder: 'input' })
      .finally(() => going.delete(filename))
    going.set(filename, gone)
  }

  async function bringAll(
    wanted: ReadonlyMap<string, readonly [filename: string, input: EngineInput]>,
    signal: AbortSignal,
  ): Promise<Map<string, string>> {
    const staged = new Map<string, string>()
    const taken = new Set<string>()
    for (const [name, [filename, input]] of wanted) {
      const path = await bringShared(filename, input, signal).catch((error) => {
        // The upload was somebody else's, and they gave up: this run still needs the file.
        if (!(error instanceof CallError) || error.fault !== 'aborted' || signal.aborted) throw error
        return bringShared(filename, input, signal)
      })
      const entry = kept.get(filename)
      if (entry !== undefined) entry.path = path
      staged.set(name, spell(path, name, taken))
    }
    return staged
  }

  function bringShared(filename: string, input: EngineInput, signal: AbortSignal): Promise<string> {
    const known = brought.get(filename)
    if (known !== undefined) return known
    const here = brought
    const gone = going.get(filename)
    const work =
      gone === undefined ? bringOne(filename, input, signal) : gone.then(() => bringOne(filename, input, signal))
    here.set(filename, work)
    work.catch(() => here.delete(filename))
    return work
  }

  return {
    async bring(inputs, signal) {
      const wanted = new Map([...inputs].map(([name, input]) => [name, [stagedName(name, input), input] as const]))
      for (const [filename] of wanted.values()) use(filename)
      try {
        return await bringAll(wanted, signal)
      } catch (error) {
        letGo([...wanted.values()].map(([filename]) => filename))
        throw error
      }
    },
    letGo: (staged) => letGo([...staged.values()].map((path) => basename(path))),
    forget() {
      brought = new Map()
    },
    flatten() {
      subfolder = ''
      brought = new Map()
    },
  }
}

/** As a graph names it. */
function toPath(subfolder: string, filename: string): string {
  return subfolder === '' ? filename : `${subfolder.replaceAll('\\', '/')}/${filename}`
}

function stagedName(name: string, { hash, contentType }: EngineInput): string {
  const written = extname(name.replace(ANNOTATION, ''))
  const extension = EXTENSION.test(written) ? written.toLowerCase() : `.${extensionFromType(contentType) ?? 'bin'}`
  return `${hash}${extension}`
}

/**
 * The path as the graph of this run has it. No two names of a graph get the same text, though their bytes be one file, and none
 * gets a shorter one: so the graph that the server writes into its files can be turned back, in place. A file beside the user's
 * own has one name only, for nodes that compare.
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

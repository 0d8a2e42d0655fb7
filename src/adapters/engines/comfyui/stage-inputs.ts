/**
 * Brings the files of a run to the server, each once: named by content, so that equal files of different jobs are one file
 * there and the server's own cache finds what it has computed from it. What has been brought is remembered for as long as
 * the server process lives; after that it is asked first.
 */
import { extname } from 'node:path'
import type { EngineInput } from '../../../domain/engine/engine.ts'
import { isJsonObject } from '../../../lib/lossless-json.ts'
import { extensionFromType } from '../../../lib/mime.ts'
import { sleep } from '../../../lib/sleep.ts'
import type { ComfyApi } from './api.ts'
import type { ComfyBounds } from './bounds.ts'
import { CallError } from './http.ts'
import { escapeJson } from './metadata/own-names.ts'
import { multipartOf } from './multipart-body.ts'

/** The folder within the server's input folder. */
const FOLDER = 'atelier'
const ANNOTATION = / \[(?:input|output|temp)\]$/
const FILLER = '-'
// Leaves room for the fillers of namesakes below what file systems take (255).
const MAX_NAME_BYTES = 200
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
  /** null: not known. */
  maxUploadBytes(): number | null
}

export function createStage({ api, bounds, maxUploadBytes }: StageDeps): Stage {
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
    const form = multipartOf(
      { subfolder, type: 'input', overwrite: 'true' },
      {
        field: 'image',
        filename,
        contentType: input.contentType,
        sizeBytes: input.sizeBytes,
        read: () => input.read(),
      },
    )
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

  function bringShared(filename: string, input: EngineInput, signal: AbortSignal): Promise<string> {
    const known = brought.get(filename)
    if (known !== undefined) return known
    const here = brought
    const work = bringOne(filename, input, signal)
    here.set(filename, work)
    work.catch(() => here.delete(filename))
    return work
  }

  return {
    async bring(inputs, signal) {
      const staged = new Map<string, string>()
      const taken = new Set<string>()
      for (const [name, input] of inputs) {
        const filename = stagedName(name, input, taken)
        taken.add(filename)
        staged.set(
          name,
          await bringShared(filename, input, signal).catch((error) => {
            // The upload was somebody else's, and they gave up: this run still needs the file.
            if (!(error instanceof CallError) || error.fault !== 'aborted' || signal.aborted) throw error
            return bringShared(filename, input, signal)
          }),
        )
      }
      return staged
    },
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

/**
 * Two names in one graph get two files even where the bytes are equal, and no name is shorter than the one it stands for: so the
 * graph that the server writes into its files can be turned back, in place. Few names are so long.
 */
function stagedName(name: string, { hash, contentType }: EngineInput, taken: ReadonlySet<string>): string {
  const written = extname(name.replace(ANNOTATION, ''))
  const extension = EXTENSION.test(written) ? written.toLowerCase() : `.${extensionFromType(contentType) ?? 'bin'}`
  const stemBytes = Math.min(escapeJson(name).length, MAX_NAME_BYTES) - extension.length
  let stem = hash.padEnd(stemBytes, FILLER)
  while (taken.has(`${stem}${extension}`)) stem += FILLER
  return `${stem}${extension}`
}

/**
 * The calls of a ComfyUI server that we use, read into our own shapes. Routes that older servers lack answer null or false;
 * everything else that goes wrong is a CallError.
 */

import type { NodeDefinition } from '../../../../../engine/graph/node-catalog.ts'
import type { ObjectInfo } from '../../../../../engine/graph/object-info.ts'
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../../../lib/json/lossless-json.ts'
import { type MultipartBody, writeMultipart } from '../../../../../lib/outbound/write-multipart.ts'
import type { EngineInput } from '../../../../domain/engine/engine-port.ts'
import type { EngineRuntime } from '../../../../domain/engine/fleet/observed-release.ts'
import type { ComfyBounds } from '../comfy-bounds.ts'
import { CallError, type ComfyHttp, type StreamedAnswer } from './comfy-http.ts'
import { toText } from './socket-frames.ts'

export interface QueueEntry {
  readonly promptId: string
  readonly clientId: string | null
}

export interface Queue {
  readonly running: readonly QueueEntry[]
  readonly pending: readonly QueueEntry[]
}

interface Abortable {
  readonly signal?: AbortSignal
}

export interface FileLocation {
  readonly filename: string
  readonly subfolder: string
  readonly folder: 'output' | 'temp' | 'input'
}

export function viewPath({ filename, subfolder, folder }: FileLocation): string {
  return `/view?${new URLSearchParams({ filename, subfolder, type: folder })}`
}

/** The form of `/upload/image`, which takes files of every kind and writes over a file of the same name. */
export function writeUpload(
  { filename, subfolder, folder }: FileLocation,
  content: Pick<EngineInput, 'contentType' | 'sizeBytes'> & {
    read(): Iterable<Uint8Array> | AsyncIterable<Uint8Array>
  },
): MultipartBody {
  const { contentType, sizeBytes } = content
  return writeMultipart([
    { name: 'subfolder', value: subfolder },
    { name: 'type', value: folder },
    { name: 'overwrite', value: 'true' },
    { name: 'image', filename, contentType, sizeBytes, read: () => content.read() },
  ])
}

function readEntries(value: JsonValue | undefined): QueueEntry[] {
  if (!Array.isArray(value)) throw new CallError('malformed', '/queue: a list is missing')
  return value.map((entry) => {
    if (!Array.isArray(entry) || typeof entry[1] !== 'string')
      throw new CallError('malformed', '/queue: an entry of an unknown shape')
    const extra = entry[3]
    return {
      promptId: entry[1],
      clientId: isJsonObject(extra) && typeof extra.client_id === 'string' ? extra.client_id : null,
    }
  })
}

function readObject(value: JsonValue, path: string): JsonObject {
  if (!isJsonObject(value)) throw new CallError('malformed', `${path}: not an object`)
  return value
}

export class ComfyApi {
  readonly http: ComfyHttp
  readonly #small: { readonly deadlineMs: number; readonly maxBytes: number }
  readonly #bounds: ComfyBounds

  constructor(http: ComfyHttp, bounds: ComfyBounds) {
    this.#bounds = bounds
    this.http = http
    this.#small = { deadlineMs: bounds.callMs, maxBytes: bounds.maxAnswerBytes }
  }

  /** Folders of models; null: the server does not list them. */
  modelFolders(options: Abortable): Promise<readonly JsonValue[] | null> {
    return this.#optionalList('/experiment/models', options)
  }

  /** Files of one of them; null: it has no such folder. */
  modelFiles(folder: string, options: Abortable): Promise<readonly JsonValue[] | null> {
    return this.#optionalList(`/experiment/models/${encodeURIComponent(folder)}`, options)
  }

  /** The text is sent as it is. */
  submit(json: string, options: Abortable): Promise<JsonValue> {
    return this.http.json('/prompt', {
      ...this.#small,
      ...options,
      deadlineMs: this.#bounds.submitMs,
      method: 'POST',
      json,
    })
  }

  async queue(options: Abortable): Promise<Queue> {
    const answer = readObject(await this.http.json('/queue', { ...this.#small, ...options }), '/queue')
    return { running: readEntries(answer.queue_running), pending: readEntries(answer.queue_pending) }
  }

  /** null: the server has no such entry, not yet or no longer. */
  async history(promptId: string, options: Abortable): Promise<JsonObject | null> {
    const answer = readObject(await this.http.json(`/history/${promptId}`, { ...this.#small, ...options }), '/history')
    const entry = Object.hasOwn(answer, promptId) ? answer[promptId] : null
    return entry === null ? null : readObject(entry, '/history')
  }

  async forgetHistory(promptIds: readonly string[]): Promise<void> {
    await this.#post('/history', { delete: [...promptIds] })
  }

  async deletePending(promptId: string): Promise<void> {
    await this.#post('/queue', { delete: [promptId] })
  }

  /** Always sent with an id: without one the server would stop whatever runs. */
  async interrupt(promptId: string): Promise<void> {
    await this.#post('/interrupt', { prompt_id: promptId })
  }

  /** null: the server does not know such a call. */
  async cancelJob(promptId: string): Promise<boolean | null> {
    try {
      const answer = await this.http.json(`/api/jobs/${promptId}/cancel`, {
        ...this.#small,
        method: 'POST',
        json: '{}',
      })
      return isJsonObject(answer) && answer.cancelled === true
    } catch (error) {
      if (error instanceof CallError && error.status !== null) return null
      throw error
    }
  }

  async free(options: Abortable): Promise<void> {
    await this.#post('/free', { unload_models: true, free_memory: true }, options)
  }

  async queueRemaining(options: Abortable): Promise<number | null> {
    const answer = await this.#optional('/prompt', options)
    const info = answer?.exec_info
    return isJsonObject(info) && typeof info.queue_remaining === 'number' ? info.queue_remaining : null
  }

  /** null: the server does not say. */
  systemStats(options: Abortable): Promise<JsonObject | null> {
    return this.#optional('/system_stats', options)
  }

  /** null: an older server without such a call. */
  features(options: Abortable): Promise<JsonObject | null> {
    return this.#optional('/features', options)
  }

  /** As text, so that it can be compared before it is parsed. */
  async objectInfo(options: Abortable): Promise<string> {
    const { status, text } = await this.http.call('/object_info', {
      ...options,
      deadlineMs: this.#bounds.objectInfoMs,
      maxBytes: this.#bounds.maxObjectInfoBytes,
    })
    if (status !== 200) throw new CallError('status', `/object_info answered ${status}`, { status })
    return text
  }

  /** False: the server has no such subscription. */
  async subscribeLogs(clientId: string): Promise<boolean> {
    const json = stringifyLosslessJson({ clientId, enabled: true })
    const { status } = await this.http.call('/internal/logs/subscribe', { ...this.#small, method: 'PATCH', json })
    return status >= 200 && status < 300
  }

  /** The newest pieces of what the server printed, as it words them; null: it keeps no record. */
  async printed(): Promise<JsonValue[] | null> {
    const path = '/internal/logs/raw'
    const { status, text } = await this.http.call(path, this.#small)
    if (status >= 500) throw new CallError('status', `${path} answered ${status}`, { status })
    if (status < 200 || status > 299) return null
    // It is long, and read often: texts alone, which a plain parse leaves as they are.
    const answer = JSON.parse(text) as JsonValue
    return isJsonObject(answer) && Array.isArray(answer.entries) ? answer.entries : null
  }

  async deleteAsset(assetId: string): Promise<void> {
    await this.http.call(`/api/assets/${encodeURIComponent(assetId)}`, { ...this.#small, method: 'DELETE' })
  }

  /** Replaces a file by an empty one. False: the server refuses. */
  async emptyFile({ filename, subfolder, folder }: FileLocation): Promise<boolean> {
    const nothing = { contentType: 'application/octet-stream', sizeBytes: 0, read: () => [] }
    const form = writeUpload({ filename, subfolder, folder }, nothing)
    const { status } = await this.http.call('/upload/image', { ...this.#small, method: 'POST', ...form })
    return status === 200
  }

  head(location: FileLocation, { signal }: Abortable): Promise<StreamedAnswer> {
    return this.http.stream(viewPath(location), {
      method: 'HEAD',
      firstByteMs: this.#bounds.callMs,
      idleMs: this.#bounds.callMs,
      signal: signal ?? AbortSignal.timeout(this.#bounds.callMs),
    })
  }

  #post(path: string, body: JsonObject, options: Abortable = {}): Promise<JsonValue> {
    return this.http.json(path, { ...this.#small, ...options, method: 'POST', json: stringifyLosslessJson(body) })
  }

  /** null: the server, or a proxy before it, refuses the question; it answers, so it is there. */
  async #ask(path: string, options: Abortable & { readonly maxBytes?: number }): Promise<JsonValue> {
    try {
      return await this.http.json(path, { ...this.#small, ...options })
    } catch (error) {
      if (error instanceof CallError && error.status !== null && error.status < 500) return null
      throw error
    }
  }

  async #optional(path: string, options: Abortable): Promise<JsonObject | null> {
    const answer = await this.#ask(path, options)
    return answer === null ? null : readObject(answer, path)
  }

  async #optionalList(path: string, options: Abortable): Promise<readonly JsonValue[] | null> {
    const answer = await this.#ask(path, { ...options, maxBytes: this.#bounds.maxObjectInfoBytes })
    return Array.isArray(answer) ? answer : null
  }
}

/** What a server says about itself: its node classes, completed where an older server leaves fields out, and its device. */

/** Throws CallError when the text describes no classes. */
export function readObjectInfo(text: string): ObjectInfo {
  let value: unknown
  try {
    value = parseLosslessJson(text)
  } catch {
    throw new CallError('malformed', '/object_info is not JSON')
  }
  if (!isJsonObject(value)) throw new CallError('malformed', '/object_info is not an object')
  const classes = Object.entries(value).filter((entry): entry is [string, JsonObject] => isJsonObject(entry[1]))
  if (classes.length === 0) throw new CallError('malformed', '/object_info describes no node class')
  return Object.fromEntries(classes.map(([name, told]) => [name, complete(name, told)]))
}

function complete(name: string, told: JsonObject): NodeDefinition {
  const output = Array.isArray(told.output) ? told.output : []
  return {
    display_name: name,
    category: '',
    output_is_list: output.map(() => false),
    output_name: output.map(String),
    is_input_list: false,
    has_intermediate_output: false,
    ...told,
    name,
    output,
    input: (isJsonObject(told.input) ? told.input : {}) as NodeDefinition['input'],
    input_order: (isJsonObject(told.input_order) ? told.input_order : {}) as NodeDefinition['input_order'],
    output_node: told.output_node === true,
  } as NodeDefinition
}

export interface Device {
  readonly name: string
  readonly vramTotalBytes: number | null
  readonly vramFreeBytes: number | null
}

/** Of `system` in `/system_stats`, where Python states its compiler, too. */
export function readRuntime({ python_version: python, pytorch_version: torch }: JsonObject): EngineRuntime {
  return { python: toText(python)?.split(' ')[0] ?? null, torch: toText(torch) }
}

/** The first device of `/system_stats`; null: it names none. */
export function readDevice({ devices }: JsonObject): Device | null {
  const first = Array.isArray(devices) ? devices[0] : null
  if (!isJsonObject(first)) return null
  const bytes = (value: unknown) => (typeof value === 'number' ? value : null)
  return {
    name: toText(first.name) ?? '',
    vramTotalBytes: bytes(first.vram_total),
    vramFreeBytes: bytes(first.vram_free),
  }
}

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

export interface ComfyApi {
  readonly http: ComfyHttp
  /** The text is sent as it is. */
  submit(body: string, options: Abortable): Promise<JsonValue>
  queue(options: Abortable): Promise<Queue>
  /** null: the server has no such entry, not yet or no longer. */
  history(promptId: string, options: Abortable): Promise<JsonObject | null>
  forgetHistory(promptIds: readonly string[]): Promise<void>
  deletePending(promptId: string): Promise<void>
  /** Always sent with an id: without one the server would stop whatever runs. */
  interrupt(promptId: string): Promise<void>
  /** null: the server does not know such a call. */
  cancelJob(promptId: string): Promise<boolean | null>
  free(options: Abortable): Promise<void>
  queueRemaining(options: Abortable): Promise<number | null>
  /** null: the server does not say. */
  systemStats(options: Abortable): Promise<JsonObject | null>
  /** null: an older server without such a call. */
  features(options: Abortable): Promise<JsonObject | null>
  /** As text, so that it can be compared before it is parsed. */
  objectInfo(options: Abortable): Promise<string>
  /** Folders of models; null: the server does not list them. */
  modelFolders(options: Abortable): Promise<readonly JsonValue[] | null>
  /** Files of one of them; null: it has no such folder. */
  modelFiles(folder: string, options: Abortable): Promise<readonly JsonValue[] | null>
  /** False: the server has no such subscription. */
  subscribeLogs(clientId: string): Promise<boolean>
  /** The newest pieces of what the server printed, as it words them; null: it keeps no record. */
  printed(): Promise<JsonValue[] | null>
  deleteAsset(assetId: string): Promise<void>
  /** Replaces a file by an empty one. False: the server refuses. */
  emptyFile(location: FileLocation): Promise<boolean>
  head(location: FileLocation, options: Abortable): Promise<StreamedAnswer>
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

export function createComfyApi(http: ComfyHttp, bounds: ComfyBounds): ComfyApi {
  const small = { deadlineMs: bounds.callMs, maxBytes: bounds.maxAnswerBytes }
  const post = (path: string, body: JsonObject, options: Abortable = {}) =>
    http.json(path, { ...small, ...options, method: 'POST', json: stringifyLosslessJson(body) })

  /** null: the server, or a proxy before it, refuses the question; it answers, so it is there. */
  async function ask(path: string, options: Abortable & { readonly maxBytes?: number }): Promise<JsonValue> {
    try {
      return await http.json(path, { ...small, ...options })
    } catch (error) {
      if (error instanceof CallError && error.status !== null && error.status < 500) return null
      throw error
    }
  }

  async function optional(path: string, options: Abortable): Promise<JsonObject | null> {
    const answer = await ask(path, options)
    return answer === null ? null : readObject(answer, path)
  }

  async function optionalList(path: string, options: Abortable): Promise<readonly JsonValue[] | null> {
    const answer = await ask(path, { ...options, maxBytes: bounds.maxObjectInfoBytes })
    return Array.isArray(answer) ? answer : null
  }

  return {
    http,
    modelFolders: (options) => optionalList('/experiment/models', options),
    modelFiles: (folder, options) => optionalList(`/experiment/models/${encodeURIComponent(folder)}`, options),
    submit: (json, options) =>
      http.json('/prompt', { ...small, ...options, deadlineMs: bounds.submitMs, method: 'POST', json }),
    async queue(options) {
      const answer = readObject(await http.json('/queue', { ...small, ...options }), '/queue')
      return { running: readEntries(answer.queue_running), pending: readEntries(answer.queue_pending) }
    },
    async history(promptId, options) {
      const answer = readObject(await http.json(`/history/${promptId}`, { ...small, ...options }), '/history')
      const entry = Object.hasOwn(answer, promptId) ? answer[promptId] : null
      return entry === null ? null : readObject(entry, '/history')
    },
    async forgetHistory(promptIds) {
      await post('/history', { delete: [...promptIds] })
    },
    async deletePending(promptId) {
      await post('/queue', { delete: [promptId] })
    },
    async interrupt(promptId) {
      await post('/interrupt', { prompt_id: promptId })
    },
    async cancelJob(promptId) {
      try {
        const answer = await http.json(`/api/jobs/${promptId}/cancel`, { ...small, method: 'POST', json: '{}' })
        return isJsonObject(answer) && answer.cancelled === true
      } catch (error) {
        if (error instanceof CallError && error.status !== null) return null
        throw error
      }
    },
    async free(options) {
      await post('/free', { unload_models: true, free_memory: true }, options)
    },
    async queueRemaining(options) {
      const answer = await optional('/prompt', options)
      const info = answer?.exec_info
      return isJsonObject(info) && typeof info.queue_remaining === 'number' ? info.queue_remaining : null
    },
    systemStats: (options) => optional('/system_stats', options),
    features: (options) => optional('/features', options),
    async objectInfo(options) {
      const { status, text } = await http.call('/object_info', {
        ...options,
        deadlineMs: bounds.objectInfoMs,
        maxBytes: bounds.maxObjectInfoBytes,
      })
      if (status !== 200) throw new CallError('status', `/object_info answered ${status}`, { status })
      return text
    },
    async subscribeLogs(clientId) {
      const json = stringifyLosslessJson({ clientId, enabled: true })
      const { status } = await http.call('/internal/logs/subscribe', { ...small, method: 'PATCH', json })
      return status >= 200 && status < 300
    },
    async printed() {
      const path = '/internal/logs/raw'
      const { status, text } = await http.call(path, small)
      if (status >= 500) throw new CallError('status', `${path} answered ${status}`, { status })
      if (status < 200 || status > 299) return null
      // It is long, and read often: texts alone, which a plain parse leaves as they are.
      const answer = JSON.parse(text) as JsonValue
      return isJsonObject(answer) && Array.isArray(answer.entries) ? answer.entries : null
    },
    async deleteAsset(assetId) {
      await http.call(`/api/assets/${encodeURIComponent(assetId)}`, { ...small, method: 'DELETE' })
    },
    async emptyFile({ filename, subfolder, folder }) {
      const nothing = { contentType: 'application/octet-stream', sizeBytes: 0, read: () => [] }
      const form = writeUpload({ filename, subfolder, folder }, nothing)
      const { status } = await http.call('/upload/image', { ...small, method: 'POST', ...form })
      return status === 200
    },
    head: (location, { signal }) =>
      http.stream(viewPath(location), {
        method: 'HEAD',
        firstByteMs: bounds.callMs,
        idleMs: bounds.callMs,
        signal: signal ?? AbortSignal.timeout(bounds.callMs),
      }),
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

/** What a server says about itself: its node classes, completed where an older server leaves fields out, and its device. */
import type { NodeDefinition } from '../../../../../engine/graph/node-catalog.ts'
import type { ObjectInfo } from '../../../../../engine/graph/object-info.ts'
import { isJsonObject, type JsonObject, parseLosslessJson } from '../../../../../lib/json/lossless-json.ts'
import { CallError } from './comfy-http.ts'
import { toText } from './socket-frames.ts'

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

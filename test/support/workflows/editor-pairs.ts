/** The recorded pairs of the editor and the classes they were made with; see test/fixtures/editor-pairs. */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { gunzipSync } from 'node:zlib'
import type { NodeCatalog } from '../../../engine/graph/node-catalog.ts'
import { catalogOf, type ObjectInfo } from '../../../engine/graph/object-info.ts'
import { type JsonObject, parseLosslessJson } from '../../../lib/json/lossless-json.ts'

export interface EditorPair {
  readonly name: string
  readonly ui: JsonObject
  readonly prompt: JsonObject
}

const FOLDER = path.join(import.meta.dirname, '../../fixtures/editor-pairs')

const readZipped = (name: string) => gunzipSync(readFileSync(path.join(FOLDER, name))).toString()

/** The day on which the pairs were recorded. */
export const RECORDED_ON = new Date(2026, 10, 15, 12)

export function readEditorPairs(): EditorPair[] {
  const pairs = parseLosslessJson(readZipped('pairs.json.gz')) as Record<string, Omit<EditorPair, 'name'>>
  return Object.entries(pairs).map(([name, pair]) => ({ name, ...pair }))
}

export function readEditorObjectInfo(): ObjectInfo {
  return JSON.parse(readZipped('object_info.json.gz')) as ObjectInfo
}

export function readEditorCatalog(): NodeCatalog {
  return catalogOf(readEditorObjectInfo())
}

/** Files as the editor saves them, in few words, and what they are converted to. */
import assert from 'node:assert/strict'
import type { JsonObject, JsonValue } from '../../../../lib/json/lossless-json.ts'
import { ServiceError } from '../../../../src/domain/errors.ts'
import { convertWorkflow } from '../../../../src/domain/workflows/convert/convert-file.ts'
import { readEditorCatalog } from '../../../support/workflows/editor-pairs.ts'

export const catalog = readEditorCatalog()
export const NOW = new Date(2026, 1, 3, 4, 5, 6)

export type Node = Record<string, JsonValue>
export type WireLink = [id: number, origin: number, originSlot: number, target: number, targetSlot: number]

export const node = (id: number, type: string, more: Node = {}): Node => ({
  id,
  type,
  mode: 0,
  inputs: [],
  outputs: [],
  properties: {},
  ...more,
})
export const input = (name: string, type: string, link: number | null, hasWidget = false): JsonValue => ({
  name,
  type,
  link,
  ...(hasWidget && { widget: { name } }),
})
export const output = (type: string, ...links: number[]): JsonValue => ({ name: type, type, links })
export const file = (nodes: Node[], links: WireLink[] = [], more: JsonObject = {}): JsonObject => ({
  nodes,
  links: links.map((link) => [...link, '*']),
  version: 0.4,
  ...more,
})

export function convert(saved: JsonObject, random = () => 0) {
  return convertWorkflow(saved, { catalog, now: NOW, random })
}

export function inputsOf(saved: JsonObject): Record<string, JsonObject> {
  const { workflow } = convert(saved)
  return Object.fromEntries(
    Object.entries(workflow).map(([id, each]) => [id, (each as JsonObject)['inputs'] as JsonObject]),
  )
}

export function refusal(saved: JsonObject): { message: string; reason: string | undefined } {
  try {
    convert(saved)
  } catch (error) {
    assert.ok(error instanceof ServiceError)
    const [first] = Object.values(error.details?.['node_errors'] as Record<string, { reason: string }[]>)
    return { message: error.message, reason: first?.[0].reason }
  }
  return assert.fail('it was converted')
}

export const checkpoint = (id: number, ...links: number[]) =>
  node(id, 'CheckpointLoaderSimple', {
    outputs: [output('MODEL', ...links), output('CLIP'), output('VAE')],
    widgets_values: ['a.safetensors'],
  })

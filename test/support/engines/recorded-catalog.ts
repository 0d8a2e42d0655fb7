/** A catalog made of the recorded definitions of a real ComfyUI, plus whatever a test defines itself. */
import { readFileSync } from 'node:fs'
import type { NodeCatalog, NodeDefinition } from '../../../engine/graph/node-catalog.ts'
import { type JsonValue, parseLosslessJson } from '../../../lib/json/lossless-json.ts'

export function readFixture(name: string): JsonValue {
  return parseLosslessJson(readFileSync(new URL(`../../fixtures/${name}`, import.meta.url), 'utf8'))
}

// Validators are code and do not show in the definitions: these are the ones of the recorded classes.
const SELF_CHECKED: Readonly<Record<string, readonly string[]>> = {
  LoadImage: ['image'],
  LoadImageMask: ['image'],
  LoadImageOutput: ['image'],
  WebcamCapture: ['image'],
  LoadAudio: ['audio'],
  LoadVideo: ['file'],
  LoadLatent: ['latent'],
  CustomCombo: ['choice', 'index'],
}

export function recordedCatalog(extra: Readonly<Record<string, NodeDefinition>> = {}): NodeCatalog {
  const recorded = readFixture('object_info.json') as unknown as Record<string, NodeDefinition>
  const classes = new Map(Object.entries({ ...recorded, ...extra }))
  const selfCheckedInputs = (classType: string) => SELF_CHECKED[classType] ?? []
  return {
    find: (classType) => classes.get(classType) ?? null,
    classTypes: () => [...classes.keys()],
    selfCheckedInputs,
    fileInputs: (classType) => (classType === 'CustomCombo' ? [] : selfCheckedInputs(classType)),
  }
}

/** The smallest definition: tests name only what they are about. */
export function defineClass(name: string, definition: Partial<NodeDefinition>): NodeDefinition {
  const output = definition.output ?? []
  return {
    input: {},
    input_order: {},
    is_input_list: false,
    output_is_list: output.map(() => false),
    output_name: output.map(String),
    name,
    display_name: name,
    category: 'test',
    output_node: false,
    has_intermediate_output: false,
    ...definition,
    output,
  }
}

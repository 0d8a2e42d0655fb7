/**
 * Classes that ComfyUI has renamed or folded into others. A graph made for an old version still runs: a class that the catalog
 * does not know and that has a successor is rewritten before validation. Classes that exist are never touched.
 */

import type { JsonObject, JsonValue } from '../../lib/json/lossless-json.ts'
import { type Graph, type GraphNode, isLink } from './graph.ts'
import type { NodeCatalog } from './node-catalog.ts'

type InputMapping =
  | { readonly newId: string; readonly oldId: string }
  | { readonly newId: string; readonly setValue: JsonValue }

interface Replacement {
  readonly newClass: string
  /** null: the successor takes the same inputs. */
  readonly inputs: readonly InputMapping[] | null
  /** Old slot to new slot; slots that are not named stay. */
  readonly outputs: ReadonlyMap<number, number>
  /** The order of the widgets in the editor's own save format, where editors need it. */
  readonly oldWidgetIds?: readonly string[]
}

const SAME_OUTPUTS: ReadonlyMap<number, number> = new Map()

function renamed(newClass: string): Replacement {
  return { newClass, inputs: null, outputs: SAME_OUTPUTS }
}

const REPLACEMENTS: ReadonlyMap<string, Replacement> = new Map<string, Replacement>([
  [
    'ResizeImagesByLongerEdge',
    {
      newClass: 'ImageScaleToMaxDimension',
      inputs: [
        { newId: 'image', oldId: 'images' },
        { newId: 'largest_size', oldId: 'longer_edge' },
        { newId: 'upscale_method', setValue: 'lanczos' },
      ],
      outputs: new Map([[0, 0]]),
      oldWidgetIds: ['longer_edge'],
    },
  ],
  [
    'ImageBatch',
    {
      newClass: 'BatchImagesNode',
      inputs: [
        { newId: 'images.image0', oldId: 'image1' },
        { newId: 'images.image1', oldId: 'image2' },
      ],
      outputs: SAME_OUTPUTS,
    },
  ],
  [
    'ImageScaleBy',
    {
      newClass: 'ResizeImageMaskNode',
      inputs: [
        { newId: 'input', oldId: 'image' },
        { newId: 'resize_type', setValue: 'scale by multiplier' },
        { newId: 'resize_type.multiplier', oldId: 'scale_by' },
        { newId: 'scale_method', oldId: 'upscale_method' },
      ],
      outputs: SAME_OUTPUTS,
      oldWidgetIds: ['upscale_method', 'scale_by'],
    },
  ],
  [
    'T2IAdapterLoader',
    {
      newClass: 'ControlNetLoader',
      inputs: [{ newId: 'control_net_name', oldId: 't2i_adapter_name' }],
      outputs: SAME_OUTPUTS,
    },
  ],
  ['Load3DAnimation', renamed('Load3D')],
  ['Preview3DAnimation', renamed('Preview3D')],
  ['SDV_img2vid_Conditioning', renamed('SVD_img2vid_Conditioning')],
  ['ConditioningAverage ', renamed('ConditioningAverage')],
])

/** The table in the form that editors expect. */
export function describeReplacements(): object {
  const entries = Array.from(REPLACEMENTS, ([oldClass, { newClass, inputs, outputs, oldWidgetIds }]) => {
    const description = {
      new_node_id: newClass,
      old_node_id: oldClass,
      old_widget_ids: oldWidgetIds ?? null,
      input_mapping: inputs?.map(describeMapping) ?? null,
      output_mapping: outputs.size === 0 ? null : Array.from(outputs, ([from, to]) => ({ new_idx: to, old_idx: from })),
    }
    return [oldClass, [description]] as const
  })
  return Object.fromEntries(entries)
}

function describeMapping(mapping: InputMapping): object {
  return 'oldId' in mapping
    ? { new_id: mapping.newId, old_id: mapping.oldId }
    : { new_id: mapping.newId, set_value: mapping.setValue }
}

function findReplacement(catalog: NodeCatalog, classType: string): Replacement | null {
  if (catalog.find(classType) !== null) return null
  const replacement = REPLACEMENTS.get(classType)
  return replacement !== undefined && catalog.find(replacement.newClass) !== null ? replacement : null
}

/** Returns the same object when nothing has to be replaced. */
export function replaceClasses(graph: Graph, catalog: NodeCatalog): Graph {
  const replaced = new Map<string, Replacement>()
  for (const [id, node] of graph) {
    const replacement = findReplacement(catalog, node.classType)
    if (replacement !== null) replaced.set(id, replacement)
  }
  if (replaced.size === 0) return graph
  const result = new Map<string, GraphNode>()
  for (const [id, node] of graph) {
    const inputs = remapLinks(node.inputs, replaced)
    const replacement = replaced.get(id)
    result.set(
      id,
      replacement === undefined
        ? { ...node, inputs }
        : { ...node, classType: replacement.newClass, inputs: mapInputs(inputs, replacement) },
    )
  }
  return result
}

function mapInputs(inputs: JsonObject, { inputs: mappings }: Replacement): JsonObject {
  if (mappings === null) return inputs
  const mapped: JsonObject = {}
  for (const mapping of mappings) {
    if ('setValue' in mapping) mapped[mapping.newId] = mapping.setValue
    // An input that was not given stays absent, and validation says that it is missing.
    else if (Object.hasOwn(inputs, mapping.oldId)) mapped[mapping.newId] = inputs[mapping.oldId]
  }
  return mapped
}

function remapLinks(inputs: JsonObject, replaced: ReadonlyMap<string, Replacement>): JsonObject {
  let result = inputs
  for (const [name, value] of Object.entries(inputs)) {
    if (!isLink(value)) continue
    const slot = replaced.get(value[0])?.outputs.get(value[1])
    if (slot !== undefined && slot !== value[1]) {
      if (result === inputs) result = { ...inputs }
      Object.defineProperty(result, name, {
        value: [value[0], slot],
        enumerable: true,
        configurable: true,
        writable: true,
      })
    }
  }
  return result
}

import type { JsonObject } from '../../../../lib/json/lossless-json.ts'
import type { ConvertedFile } from '../../../domain/workflows/convert/convert-file.ts'
import type { Missing } from '../../../domain/workflows/needs.ts'

export function toConvertedView({ workflow, warnings, parameters, missing }: ConvertedFile): JsonObject {
  return {
    workflow,
    warnings: warnings.map(({ nodeId, input, message }) => ({ node_id: nodeId, input, message })),
    parameters: parameters.map(({ name, nodeId, input, kind, type, value, title }) => ({
      name,
      node_id: nodeId,
      input,
      kind,
      type,
      value,
      title,
    })),
    missing: toMissingView(missing),
  }
}

export function toMissingView({ classes, weights }: Missing) {
  return {
    classes: classes.map(({ classType, nodeIds }) => ({ class_type: classType, node_ids: [...nodeIds] })),
    weights: weights.map(({ name, nodeId, input }) => ({ name, node_id: nodeId, input })),
  }
}

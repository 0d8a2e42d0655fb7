/** Converts a workflow in this process, for the engine that `run --local` would use. */
import type { NodeCatalog } from '../../../engine/index.ts'
import type { JsonObject, JsonValue } from '../../../lib/json/lossless-json.ts'
import { convertLocally } from '../../compose/local-conversion.ts'
import { RefusedError } from '../server/client.ts'
import { toErrorLines } from '../server/job-answers.ts'
import type { Conversion } from './conversion.ts'

export async function convertHere(content: JsonObject, catalog: NodeCatalog): Promise<Conversion> {
  const result = await convertLocally(content, catalog)
  if (result.kind === 'refused') {
    const { message, nodeErrors } = result
    const body = { error: { code: 'invalid_workflow', message, details: { node_errors: nodeErrors } } }
    throw new RefusedError(422, toErrorLines(body, 422), null)
  }
  const { workflow, warnings, parameters, missing } = result.file
  return {
    workflow,
    warnings: warnings.map(({ nodeId, input, message }) => ({ node_id: nodeId, input, message })),
    parameters: parameters.map(({ nodeId, ...rest }) => ({ ...rest, node_id: nodeId }) as JsonObject),
    missing: {
      classes: missing.classes.map(({ classType, nodeIds }) => ({ class_type: classType, node_ids: [...nodeIds] })),
      weights: missing.weights.map(({ name, nodeId, input }) => ({ name, node_id: nodeId, input })),
    } satisfies Record<string, JsonValue>,
  }
}

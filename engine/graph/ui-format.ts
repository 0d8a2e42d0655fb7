/**
 * Tells the editor's own save format from the API format. An editor export lists its nodes in an array; it cannot be run,
 * and the usual per-node errors would only confuse whoever sent it.
 */
import { isJsonObject, type JsonValue } from '../../lib/json/lossless-json.ts'

/** True with and without `last_node_id`: newer editors leave it out. */
export function isUiFormat(value: JsonValue | undefined): boolean {
  if (!isJsonObject(value) || !Array.isArray(value.nodes)) return false
  return Array.isArray(value.links) || isJsonObject(value.links)
}

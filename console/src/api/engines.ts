/** How the engines stand, and the node classes that they have. */
import type { EngineFigures } from '../text/format.ts'
import { getJson, getText } from './client.ts'
import { type NodeClasses, readNodeClasses } from './node-classes.ts'

export function getEngines(signal?: AbortSignal): Promise<EngineFigures> {
  return getJson<EngineFigures>('/console/v1/engines', signal)
}

export async function getNodeClasses(signal?: AbortSignal): Promise<NodeClasses> {
  return readNodeClasses(await getText('/console/v1/nodes', signal))
}

import { getText } from './client.ts'
import { type NodeClasses, readNodeClasses } from './node-classes.ts'

export async function getNodeClasses(signal?: AbortSignal): Promise<NodeClasses> {
  return readNodeClasses(await getText('/console/v1/nodes', signal))
}

/** Classes that publish no display name: clients show the class instead. */
import type { EngineNode } from '../../node/define-node.ts'
import { withDefinition } from '../../node/dynamic-node.ts'

export function unnamed(node: EngineNode): EngineNode {
  return withDefinition(node, { display_name: null })
}

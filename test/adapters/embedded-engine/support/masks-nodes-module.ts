/** Masks, batches and latents in the form in which an engine loads further nodes, with the list nodes they work with. */
import type { EngineNode } from '../../../../src/adapters/engines/embedded/define-node.ts'
import { batchesNodes } from '../../../../src/adapters/engines/embedded/nodes/batches-nodes.ts'
import { latentsNodes } from '../../../../src/adapters/engines/embedded/nodes/latents-nodes.ts'
import { createList } from '../../../../src/adapters/engines/embedded/nodes/logic/create-list.ts'
import { masksNodes } from '../../../../src/adapters/engines/embedded/nodes/masks-nodes.ts'
import { mergeTextLists } from '../../../../src/adapters/engines/embedded/nodes/text/dataset-texts.ts'

export const nodes: readonly EngineNode[] = [
  ...masksNodes,
  ...batchesNodes,
  ...latentsNodes,
  createList,
  mergeTextLists,
]

/** The engine's node classes as the rest of the service sees them: `object_info` definitions, from memory. */

import type { NodeCatalog } from '../graph/node-catalog.ts'
import type { NodeTable } from './define-node.ts'

export function createCatalog(table: NodeTable): NodeCatalog {
  const classTypes = [...table.keys()]
  return {
    find: (classType) => table.get(classType)?.definition ?? null,
    classTypes: () => classTypes,
    selfCheckedInputs: (classType) => table.get(classType)?.selfChecked ?? [],
    fileInputs: (classType) => table.get(classType)?.fileInputs ?? [],
    folderInputs: (classType) => table.get(classType)?.folderInputs ?? [],
  }
}

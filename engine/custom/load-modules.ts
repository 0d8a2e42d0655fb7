/** Imports node modules, in a thread of theirs, and finds the nodes that they export. */
import { type NodeDeclaration, readDeclaration } from './declaration.ts'
import type { ModuleFile } from './find-modules.ts'
import type { CustomNode, RunContext } from './nodes-api.ts'

/** A node with its types erased: its declaration says what `run` takes and gives. */
export interface LoadedNode {
  readonly declaration: NodeDeclaration
  run(inputs: Readonly<Record<string, unknown>>, context: RunContext): unknown
}

const MARK = Symbol.for('atelier.node')

function isNode(value: unknown): value is CustomNode & Pick<LoadedNode, 'run'> {
  return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[MARK] === true
}

/** Throws whatever the module throws, or an Error that says what is wrong with its nodes. */
export async function loadModule({ url }: ModuleFile): Promise<LoadedNode[]> {
  const exported: Readonly<Record<string, unknown>> = await import(url)
  // A default export that is also a named one is one node.
  const nodes = [...new Set(Object.values(exported))].filter(isNode)
  if (nodes.length === 0) {
    throw new Error('it exports no node: export what defineNode returns, and put other files into a subfolder')
  }
  return nodes.map((node) => ({
    declaration: readDeclaration(node),
    run: (inputs, context) => node.run(inputs, context),
  }))
}

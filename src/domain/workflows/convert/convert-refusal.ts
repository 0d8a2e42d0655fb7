/** Why a saved workflow cannot be turned into a graph: always with the node, or the part of the file, that is at fault. */
import { refuseWorkflow } from '../graph-refusals.ts'

type ConvertReason =
  | 'malformed_file' // not the shape that the editor saves
  | 'file_too_large' // more nodes, slots or levels than any real workflow has
  | 'broken_link' // a link that names a node or a slot that is not there
  | 'endless_link' // links, or subgraphs inside of themselves, that lead back to where they began
  | 'unknown_class' // no engine describes the class, so nobody knows which value belongs to which input
  | 'needs_browser_extension' // code that a node pack runs inside of the editor's page

interface RefusedNode {
  readonly nodeId: string
  readonly field?: string
}

const MAX_MESSAGE = 500

export function refuseConversion(reason: ConvertReason, message: string, at?: RefusedNode): never {
  const text = message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE)}…` : message
  const nodeErrors =
    at === undefined
      ? {}
      : Object.fromEntries([[at.nodeId.slice(0, MAX_MESSAGE), [{ field: at.field ?? '', reason, message: text }]]])
  throw refuseWorkflow(text, nodeErrors)
}

/** How much one file may ask for altogether, where small parts of it multiply. */
export type Spend = (amount: number) => void

/** `what`: of which there would be more than `limit`. */
export function createBudget(limit: number, what: string): Spend {
  let left = limit
  return (amount) => {
    left -= amount
    if (left < 0) refuseConversion('file_too_large', `the workflow has more than ${limit} ${what}`)
  }
}

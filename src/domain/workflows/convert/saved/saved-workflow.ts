/** A workflow as the editor saves it, read into one shape whatever its version: ids as text, links by id, slots as lists. */
import type { JsonObject, JsonValue } from '../../../../../lib/json/lossless-json.ts'

export interface SavedInput {
  readonly name: string
  readonly type: string
  readonly link: string | null
  /** The widget that this input stands for. */
  readonly widget: string | null
}

export interface SavedOutput {
  readonly type: string
  readonly links: readonly string[]
}

export interface SavedNode {
  readonly id: string
  readonly type: string
  readonly title: string
  readonly mode: number
  readonly inputs: readonly SavedInput[]
  readonly outputs: readonly SavedOutput[]
  /** In the order of the widgets; some packs save them by name. Absent: the node has none, or the file leaves them out. */
  readonly values: readonly JsonValue[] | JsonObject | null
  /** The same values by name, as newer editors write them beside the list. */
  readonly namedValues: JsonObject | null
  readonly properties: JsonObject
}

export interface SavedLink {
  readonly id: string
  readonly originId: string
  readonly originSlot: number
  readonly targetId: string
  readonly targetSlot: number
}

/** One input or output of a subgraph, seen from outside. */
export interface SavedIoSlot {
  readonly name: string
  readonly type: string
  readonly linkIds: readonly string[]
}

export interface SavedGraph {
  readonly nodes: readonly SavedNode[]
  readonly links: readonly SavedLink[]
}

export interface SavedSubgraph extends SavedGraph {
  readonly id: string
  readonly name: string
  readonly inputs: readonly SavedIoSlot[]
  readonly outputs: readonly SavedIoSlot[]
}

export interface SavedWorkflow extends SavedGraph {
  readonly subgraphs: readonly SavedSubgraph[]
  /** The highest node id that was given out, which new nodes count on from. */
  readonly lastNodeId: number
  /** Old group nodes by name, as they were written. */
  readonly groupNodes: JsonObject
}

/** The ids of the two places inside of a subgraph where its inputs come in and its outputs go out. */
export const IO_INPUT = '-10'
export const IO_OUTPUT = '-20'

export const MODE = { muted: 2, bypassed: 4 } as const

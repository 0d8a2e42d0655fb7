/**
 * What a node may ask of its surroundings while it runs, and what it gives back. The same on the engine thread and on a
 * compute thread; a node cannot tell the difference.
 */

import type { JsonObject, JsonValue } from '../../lib/json/lossless-json.ts'
import type { ModelAnswer, ModelCall } from '../graph/model-nodes.ts'
import type { ShareRows, Tensor } from '../tensor/tensor.ts'
import type { Blocker, Value } from '../values/value.ts'

export type ReadInputs = Readonly<Record<string, unknown>>

export interface ProgressExtras {
  /** Shown together with this step. `isResult`: the node delivers it this way only, so no step of it may be left out. */
  readonly picture?: { readonly contentType: string; readonly bytes: Uint8Array; readonly isResult?: boolean }
  /** ComfyUI's node of this name reports no steps: ours move the progress of the job, not the events of the node. */
  readonly isOwn?: boolean
}

/** An input file of the run. `path` is where its bytes lie; it must not appear in any message. */
export interface InputFile {
  readonly path: string
  readonly hash: string
}

export interface NodeContext {
  readonly nodeId: string
  /** Throws when the run was cancelled. To be called between rows or blocks of every long loop. */
  checkpoint(): void
  progress(value: number, max: number, also?: ProgressExtras): void
  preview(contentType: string, bytes: Uint8Array): void
  log(text: string): void
  /** Text shown beside the node while it runs. */
  text(text: string): void
  /** Memory within the engine's limit. Contents are undefined: write every element. */
  allocate(shape: readonly number[]): Tensor
  readonly shareRows?: ShareRows
  /**
   * Counts memory that the call is about to take by other means, such as a decoder, against the engine's limit until it is
   * given back; `besideBytes` must be free as well. Waits while others have such memory and there is not enough for all;
   * rejects with NodeError when there will not be. A call may hold one reservation at a time.
   */
  reserve(bytes: number, besideBytes?: number): Promise<() => void>
  readonly files: {
    /** null when the run holds no file of this name. */
    find(name: string): InputFile | null
    /** Names of the run's files that lie directly in a folder, the folder included, in no order. */
    list(folder: string): readonly string[]
  }
  /** The first of `count` consecutive numbers for files of this name. */
  reserveNumbers(folder: 'output' | 'temp', subfolder: string, prefix: string, count: number): Promise<number>
  /** Runs a partner model; given up when the run is cancelled. null where a call must not wait: on compute threads. */
  readonly runModel: ((call: Omit<ModelCall, 'key'>) => Promise<ModelAnswer>) | null
  readonly hidden: {
    /** The graph as submitted, in API form. */
    prompt(): JsonObject
    extraPngInfo(): JsonValue
  }
  /** Five letters that belong to this node of this owner for as long as the engine lives. */
  readonly instanceLetters: string
  readonly maxImagePixels: number
  readonly now: Date
  /** A sub-graph to return as `expand`. Ids of different calls never clash. */
  newGraph(): GraphBuilder
}

/** A file made by a node, as its UI output names it. */
export interface MadeFile {
  readonly kind: 'file'
  readonly filename: string
  readonly subfolder: string
  readonly folder: 'output' | 'temp'
  readonly contentType: string
  readonly bytes: Uint8Array<ArrayBuffer>
}

export interface MadeValue {
  readonly kind: 'value'
  readonly value: JsonValue
}

/** A node's UI output: items by key (`images`, `text`, …), in order. */
export type MadeReport = Readonly<Record<string, readonly (MadeFile | MadeValue)[]>>

export interface CallResult {
  /** One value per output slot (a list for list outputs), one blocker for all of them, or links when `expand` is given. */
  readonly outputs: readonly Value[] | Blocker
  readonly report?: MadeReport
  /** Nodes to run in place of this one. */
  readonly expand?: GraphBuilder
}

export interface BuiltNode {
  readonly id: string
  readonly classType: string
  /** Constants of any kind, tensors included, and links. */
  readonly inputs: Readonly<Record<string, Value>>
}

export type Link = [nodeId: string, slot: number]

/**
 * A sub-graph under construction by a node that expands. Ids are "{node}.{call}.{graph}.{local}": unique within a run,
 * and readable in events.
 */
export class GraphBuilder {
  readonly nodes: BuiltNode[] = []
  readonly #prefix: string

  constructor(prefix: string) {
    this.#prefix = prefix
  }

  /** Adds a node and returns a function that gives links to its output slots. */
  node(classType: string, inputs: Readonly<Record<string, Value>>, localId?: string): (slot: number) => Link {
    const id = this.#prefix + (localId ?? String(this.nodes.length + 1))
    this.nodes.push({ id, classType, inputs })
    return (slot) => [id, slot]
  }
}

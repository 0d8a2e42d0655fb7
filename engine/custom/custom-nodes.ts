/** What the engine's threads are told of custom nodes; plain data. */
import type { NodeDeclaration } from './declaration.ts'
import type { SourceTexts } from './module-hooks.ts'

/** A module, by where it lies and how it is spoken of. */
export interface ModuleFile {
  readonly url: string
  readonly path: string
}

/** Everything that a thread needs to load the same nodes again. */
export interface CustomNodes {
  /** URLs with a slash at the end. */
  readonly folders: readonly string[]
  readonly modules: readonly ModuleFile[]
  readonly sources: SourceTexts
  readonly declarations: readonly NodeDeclaration[]
}

export const NO_CUSTOM_NODES: CustomNodes = { folders: [], modules: [], sources: new Map(), declarations: [] }

export interface NodeLimits {
  /** The longest time that one call may take. */
  readonly timeoutMs: number
  /** JavaScript's own memory in each thread; beyond it the thread ends by itself. */
  readonly heapBytes: number
  /** Buffers beside it, which V8 does not limit. */
  readonly bufferBytes: number
}

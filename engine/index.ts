/** The engine's door: everything that a program outside of this folder may use, beside the language in `graph/`. */
export {
  CheckedGraph,
  type CustomNodeOptions,
  type Engine,
  type EngineOptions,
  openEngine,
  type RunOptions,
  readCatalog,
} from './engine.ts'
export type { InputSource } from './files/input-files.ts'
export { ModelRefusedError, type RunModel } from './threads/model-line.ts'
export { EngineThreadLostError } from './threads/thread-lost-error.ts'

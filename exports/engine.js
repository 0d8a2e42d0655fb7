/** `atelier/engine`: the built-in engine for any program. */
import { load } from './program.js'

export const {
  CheckedGraph,
  EngineThreadLostError,
  GraphError,
  ModelRefusedError,
  NodeModuleError,
  openEngine,
  readCatalog,
} = load('engine/index')

/** The engine's door: everything that a program outside of this folder may use, beside the language in `graph/`. */

export { NodeModuleError } from './custom/describe-modules.ts'
export {
  CheckedGraph,
  type CustomNodeOptions,
  type Engine,
  type EngineOptions,
  type GraphSource,
  openEngine,
  type RunOptions,
  readCatalog,
} from './engine.ts'
export type { GivenInput, InputSource } from './files/input-files.ts'
export type { Graph, GraphNode } from './graph/graph.ts'
export { type FieldError, GraphError, type GraphProblem } from './graph/graph.ts'
export type { ModelAnswer, ModelCall } from './graph/model-nodes.ts'
export type { InputSpec, NodeCatalog, NodeDefinition } from './graph/node-catalog.ts'
export type {
  EngineEvent,
  EngineFailure,
  NodeRef,
  NodeReport,
  ReportedFile,
  ReportedItem,
  ReportedValue,
} from './graph/run-event.ts'
export { ModelRefusedError, type RunModel } from './threads/model-line.ts'
export { EngineThreadLostError } from './threads/run-stream.ts'

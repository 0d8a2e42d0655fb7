/**
 * Turns a workflow as ComfyUI's editor saves it into the graph that the editor would submit. It does so the way the editor
 * does: it loads the file into a model of the editor's state, and makes the prompt from that.
 */
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import type { JsonValue } from '../../../../lib/json/lossless-json.ts'
import { loadWorkflow } from './editor/load-workflow.ts'
import { type Prompt, type WriteOptions, writePrompt } from './prompt/write-prompt.ts'
import { readSavedWorkflow } from './saved/read-saved.ts'
import { withUniqueIds } from './saved/unique-ids.ts'

export interface ConvertOptions extends WriteOptions {
  /** The classes of all engines. */
  readonly catalog: NodeCatalog
}

/** Throws `invalid_workflow`, with the node at fault. */
export function convertWorkflow(saved: JsonValue, options: ConvertOptions): Prompt {
  const workflow = withUniqueIds(readSavedWorkflow(saved))
  return writePrompt(loadWorkflow(workflow, options.catalog), options)
}

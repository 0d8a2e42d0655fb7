/**
 * Turns a workflow as ComfyUI's editor saves it into the graph that the editor would submit. It does so the way the editor
 * does: it loads the file into a model of the editor's state, and makes the prompt from that.
 */
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import type { JsonValue } from '../../../../lib/json/lossless-json.ts'
import { finishNow, type Work } from '../../../../lib/waiting/turns.ts'
import { countValues, loadWorkflowSteps } from './editor/load-workflow.ts'
import { type Prompt, type WriteOptions, writePromptSteps } from './prompt/write-prompt.ts'
import { expandGroups } from './saved/expand-groups.ts'
import { readSavedSteps } from './saved/read-saved.ts'
import { withUniqueIds } from './saved/unique-ids.ts'

interface ConvertOptions extends WriteOptions {
  /** The classes of all engines. */
  readonly catalog: NodeCatalog
}

/** Throws `invalid_workflow`, with the node at fault. */
export function convertWorkflow(saved: JsonValue, options: ConvertOptions): Prompt {
  return finishNow(convertWorkflowSteps(saved, options))
}

/** The same in steps, so that a large file does not hold up other work on this thread. */
export function* convertWorkflowSteps(saved: JsonValue, options: ConvertOptions): Work<Prompt> {
  const { catalog } = options
  const read = yield* readSavedSteps(saved)
  const workflow = withUniqueIds(expandGroups(read, (type, converted) => countValues(catalog, type, converted)))
  yield
  const loaded = yield* loadWorkflowSteps(workflow, catalog)
  return yield* writePromptSteps(loaded, options)
}

/**
 * From the content of a file to a graph that can be submitted, and what its user should know of it. A graph that is in API format
 * already passes as it is.
 */
import type { Graph } from '../../../../engine/graph/graph.ts'
import { readGraphSteps } from '../../../../engine/graph/graph-json.ts'
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import type { Clock } from '../../../../lib/clock.ts'
import type { EmbeddedTexts } from '../../../../lib/files/embedded-texts.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/lossless-json.ts'
import { createTurns, finishNow, type Turns, type Work } from '../../../../lib/waiting/turns.ts'
import { asRefusal, refuseConversion } from '../graph-refusals.ts'
import { findMissing, type Missing } from '../needs.ts'
import { countValues, type EditorWorkflow, loadWorkflowSteps } from './editor/load-workflow.ts'
import { findParameters, type Parameter } from './parameters.ts'
import { type ConvertWarning, type Prompt, type WriteOptions, writePromptSteps } from './prompt/write-prompt.ts'
import { expandGroups, withUniqueIds } from './saved/expand-groups.ts'
import { readSavedSteps } from './saved/read-saved.ts'

export interface ConvertedFile {
  /** In API format. */
  readonly workflow: JsonObject
  readonly warnings: readonly ConvertWarning[]
  readonly parameters: readonly Parameter[]
  readonly missing: Missing
}

interface ConvertFileDeps {
  /** What can run in a pool; null: in the common one. */
  readonly catalog: (pool: string | null) => NodeCatalog
  readonly clock: Clock
  /** As Math.random. */
  readonly random: () => number
  /** Shared with all other long work on this thread; left out: its own. */
  readonly turns?: Turns
}

/** `pool`: where it is to run; null: in the common one. Refuses with `invalid_workflow`. */
export type ConvertFile = (content: JsonValue, pool: string | null) => Promise<ConvertedFile>

export function createConvertFile(deps: ConvertFileDeps): ConvertFile {
  const { turns = createTurns() } = deps
  return (content, pool) => turns.run(convertSteps(content, { ...deps, catalog: deps.catalog(pool) }))
}

interface ConvertContext extends Pick<ConvertFileDeps, 'clock' | 'random'> {
  readonly catalog: NodeCatalog
}

function* convertSteps(content: JsonValue, { catalog, clock, random }: ConvertContext): Work<ConvertedFile> {
  const file = unwrapFile(content)
  const { workflow, warnings } = isSaved(file)
    ? yield* convertWorkflowSteps(file, { catalog, now: clock.now(), random })
    : { workflow: readSubmitted(file), warnings: [] }
  yield
  const graph = yield* toGraph(workflow)
  const parameters = yield* findParameters(graph, catalog)
  yield
  return { workflow, warnings, parameters, missing: findMissing(graph, catalog) }
}

/** As the editor saves it; anything else should be in API format. */
export function isSaved(file: JsonValue): file is JsonObject {
  return isJsonObject(file) && Array.isArray(file['nodes'])
}

/** Also what is sent to submit a job, and what other tools keep: the workflow as a member of something else. */
export function unwrapFile(content: JsonValue): JsonValue {
  if (!isJsonObject(content) || Array.isArray(content['nodes'])) return content
  for (const name of ['workflow', 'prompt']) {
    const inner = content[name]
    if (isJsonObject(inner) && inner['class_type'] === undefined) return inner
  }
  return content
}

/** A graph in API format, without the members that are no nodes. */
export function readSubmitted(value: JsonValue): JsonObject {
  const isNode = (node: JsonValue) => isJsonObject(node) && typeof node['class_type'] === 'string'
  if (!isJsonObject(value) || !Object.values(value).some(isNode)) {
    refuseConversion(
      'malformed_file',
      'this is no workflow: neither what the editor saves (an object with nodes and links) nor a graph in API format',
    )
  }
  return value
}

export function* toGraph(workflow: JsonObject): Work<Graph> {
  try {
    return yield* readGraphSteps(workflow)
  } catch (error) {
    throw asRefusal(error)
  }
}

/**
 * Turns a workflow as ComfyUI's editor saves it into the graph that the editor would submit. It does so the way the editor
 * does: it loads the file into a model of the editor's state, and makes the prompt from that.
 */
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
  return yield* writePromptSteps(yield* loadSavedSteps(saved, options.catalog), options)
}

/** A file as it stands in the editor. */
export function* loadSavedSteps(saved: JsonValue, catalog: NodeCatalog): Work<EditorWorkflow> {
  const read = yield* readSavedSteps(saved)
  const workflow = withUniqueIds(expandGroups(read, (type, converted) => countValues(catalog, type, converted)))
  yield
  return yield* loadWorkflowSteps(workflow, catalog)
}

/**
 * Which of the texts in a media file is the workflow. A file that ComfyUI saved carries both the graph that made it and the
 * workflow of the editor. The graph is exact and needs no conversion; the workflow also says what its author calls things.
 */
const NAMES = ['prompt', 'workflow'] as const

/** JSON texts, `first` before the other; empty when the file carries no workflow. */
export function carriedTexts(texts: EmbeddedTexts, first: (typeof NAMES)[number] = 'prompt'): string[] {
  return NAMES.toSorted((a, b) => Number(b === first) - Number(a === first))
    .flatMap((name) => texts.get(name) ?? [])
    .filter((text) => text.trimStart().startsWith('{'))
}

const NOT_A_NUMBER = /(?<![\w"])-?(?:NaN|Infinity)(?![\w"])/g

/** Python writes numbers that JSON does not have. */
export function withoutOddNumbers(text: string): string {
  return text.replace(NOT_A_NUMBER, 'null')
}

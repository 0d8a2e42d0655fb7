/**
 * From a workflow file to an endpoint that could be published: the graph, named and typed inputs, named outputs. What the author
 * says of inputs counts, in this order: the inputs of App mode, the external nodes of comfy-deploy, titles that begin with `$`.
 * Where nothing is said, the inputs are those that a subgraph shows, what Primitive nodes hold, and what a caller usually sets:
 * texts, files, sizes, seeds. Every other value of the graph is a candidate, which a declaration may add.
 */
import type { Graph } from '../../../../engine/graph/graph.ts'
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import type { Clock } from '../../../../lib/clock.ts'
import type { JsonObject, JsonValue } from '../../../../lib/json/lossless-json.ts'
import { createTurns, type Turns, type Work } from '../../../../lib/waiting/turns.ts'
import { isSaved, loadSavedSteps, readSubmitted, toGraph, unwrapFile } from '../../workflows/convert/convert-file.ts'
import { findParameters, findUsers } from '../../workflows/convert/parameters.ts'
import {
  type ConvertWarning,
  type PromptOrigins,
  writePromptSteps,
} from '../../workflows/convert/prompt/write-prompt.ts'
import { readId } from '../../workflows/convert/saved/read-saved.ts'
import { folderOfInput } from '../../workflows/model-folders.ts'
import { findMissing, isWeights, type Missing, needsOf } from '../../workflows/needs.ts'
import type { EndpointInput, EndpointOutput, Required } from '../endpoint.ts'
import { createResolveAppInput } from './app-inputs.ts'
import { chooseInputs } from './choose-inputs.ts'
import { withExternalClasses } from './external-classes.ts'
import { replaceExternals } from './external-nodes.ts'
import { type AppData, readAppData, readLabels } from './labels.ts'
import { findOutputs } from './outputs.ts'
import { createPurposes, findHostInputs } from './purposes.ts'
import { type EditorState, findSources, type Source } from './sources.ts'

export interface Proposal {
  /** In API format, with the example of every input in it. */
  readonly graph: JsonObject
  readonly inputs: readonly EndpointInput[]
  readonly outputs: readonly EndpointOutput[]
  /** Further values of the graph that could be inputs, under names that no input has. */
  readonly candidates: readonly EndpointInput[]
  readonly warnings: readonly ConvertWarning[]
  readonly missing: Missing
  readonly required: Required
}

interface ProposeDeps {
  /** What can run in a pool; null: in the common one. */
  readonly catalog: (pool: string | null) => NodeCatalog
  readonly clock: Clock
  /** As Math.random. */
  readonly random: () => number
  /** Shared with all other long work on this thread; left out: its own. */
  readonly turns?: Turns
}

/** `pool`: where it is to run; null: in the common one. Refuses with `invalid_workflow`. */
export type Propose = (content: JsonValue, pool: string | null) => Promise<Proposal>

export function createPropose(deps: ProposeDeps): Propose {
  const { turns = createTurns() } = deps
  return (content, pool) => turns.run(proposeSteps(content, { ...deps, catalog: deps.catalog(pool) }))
}

interface ProposeContext extends Pick<ProposeDeps, 'clock' | 'random'> {
  readonly catalog: NodeCatalog
}

function* proposeSteps(content: JsonValue, { catalog, clock, random }: ProposeContext): Work<Proposal> {
  const file = unwrapFile(content)
  const read = isSaved(file)
    ? yield* readSaved(file, { catalog: withExternalClasses(catalog), clock, random })
    : { workflow: readSubmitted(file), warnings: [], editor: null, app: NO_APP_DATA, graphId: null }
  yield
  const before = yield* toGraph(read.workflow)
  const users = findUsers(before)
  yield
  const externals = replaceExternals(read.workflow, before, { catalog, users })
  yield
  const { workflow } = externals
  const graph = workflow === read.workflow ? before : yield* toGraph(workflow)
  const warnings = [...read.warnings, ...externals.warnings]
  const { editor, app } = read
  const sources = yield* findSources(graph, catalog, editor)
  const resolve = editor === null ? null : createResolveAppInput(editor, read.graphId)
  const appSources = app.inputs.slice(0, MAX_APP_INPUTS).flatMap((entry): Source[] => {
    const holder = resolve?.(entry) ?? null
    const source = holder === null ? undefined : sources.heldBy(holder)
    if (source !== undefined) return [source]
    const message = 'App mode names it as an input, but the prompt has no such value'
    warnings.push({ nodeId: entry.id.slice(0, 200), input: entry.widget.slice(0, 200), message })
    return []
  })
  yield
  const parameters = yield* findParameters(graph, catalog)
  const purposes = createPurposes(graph, catalog, editor === null ? new Map() : findHostInputs(editor, editor.labels))
  const { inputs, candidates } = yield* chooseInputs({
    sources: sources.all,
    app: [...new Set(appSources)],
    external: externals.inputs,
    parameters,
    purposes,
    warnings,
  })
  const outputs = yield* findOutputs(graph, { app: app.outputs, external: externals.outputs, catalog, warnings })
  return {
    graph: workflow,
    inputs,
    outputs,
    candidates,
    warnings: warnings.slice(0, MAX_WARNINGS),
    missing: findMissing(graph, catalog),
    required: requiredOf(graph, catalog),
  }
}

// More than a page could show; what is beyond is left out.
const MAX_APP_INPUTS = 1_000
const MAX_WARNINGS = 200
const NO_APP_DATA: AppData = { inputs: [], outputs: [] }

interface Read {
  readonly workflow: JsonObject
  readonly warnings: readonly ConvertWarning[]
  readonly editor: EditorState | null
  readonly app: AppData
  readonly graphId: string | null
}

function* readSaved(file: JsonObject, { catalog, clock, random }: ProposeContext): Work<Read> {
  const loaded = yield* loadSavedSteps(file, catalog)
  const origins: PromptOrigins = { widgets: new Map(), primitives: new Map() }
  const { workflow, warnings } = yield* writePromptSteps(loaded, { now: clock.now(), random, catalog, origins })
  const editor = { ...loaded, origins, labels: readLabels(file) }
  return { workflow, warnings, editor, app: readAppData(file), graphId: readId(file['id']) }
}

function requiredOf(graph: Graph, catalog: NodeCatalog): Required {
  const { classes, choices } = needsOf(graph, [catalog])
  const weights = new Map<string, { folder: string | null; name: string }>()
  for (const [classType, input, name] of choices) {
    const folder = folderOfInput(classType, input)
    if (isWeights(name)) weights.set(`${folder}/${name}`, { folder, name })
  }
  return { classes, weights: [...weights.values()] }
}

/**
 * Runs a workflow without a job and returns what it made: nothing is queued or kept. This is how a workflow is published as a
 * model.
 */
import { hash } from 'node:crypto'
import { createFileCheck, findFileNames } from '../../../../engine/graph/file-inputs.ts'
import { GraphError } from '../../../../engine/graph/graph-error.ts'
import { readGraph } from '../../../../engine/graph/graph-json.ts'
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import { replaceClasses } from '../../../../engine/graph/replace-classes.ts'
import type { NodeReport } from '../../../../engine/graph/run-event.ts'
import { validate } from '../../../../engine/graph/validate/validate.ts'
import type { ValidationResult } from '../../../../engine/graph/validate/validation-result.ts'
import { inOneChunk } from '../../../../lib/files/byte-streams.ts'
import { typeFromName } from '../../../../lib/files/mime.ts'
import { type JsonValue, stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'
import type { Engine, EngineInput, EngineRun } from '../../engine/engine-port.ts'
import { ServiceError } from '../../errors.ts'
import { asRefusal } from '../../workflows/graph-refusals.ts'

interface WorkflowCall {
  readonly accountId: string
  readonly id: string
  /** API format. */
  readonly workflow: JsonValue
  /** Files by their names in the workflow. */
  readonly files: ReadonlyMap<string, Buffer>
}

export interface MadeFile {
  readonly name: string
  readonly contentType: string
  readonly bytes: Buffer
}

export type WorkflowEnd =
  | { readonly outcome: 'finished'; readonly files: readonly MadeFile[]; readonly texts: readonly string[] }
  | { readonly outcome: 'failed'; readonly message: string }
  | { readonly outcome: 'interrupted' }

/** Throws ServiceError `invalid_workflow`. */
type RunWorkflow = (call: WorkflowCall, options: { readonly signal: AbortSignal }) => Promise<WorkflowEnd>

const FALLBACK_TYPE = 'application/octet-stream'

export function createRunWorkflow(engine: Pick<Engine, 'catalog' | 'run'>): RunWorkflow {
  return async function runWorkflow(call, { signal }) {
    const run = toRun(call, engine)
    const files: MadeFile[] = []
    const texts: string[] = []
    for await (const event of engine.run(run, { signal })) {
      if (event.type === 'node_report') await collect(event.report, { files, texts })
      if (event.type === 'failed') return { outcome: 'failed', message: event.failure.message }
      if (event.type === 'interrupted') return { outcome: 'interrupted' }
    }
    return { outcome: 'finished', files, texts }
  }
}

/** What keeps a workflow from running on an engine with this catalog; nothing when it can. */
export function checkWorkflow(
  workflow: JsonValue,
  { catalog, hasFile }: { readonly catalog: NodeCatalog; readonly hasFile: (name: string) => boolean },
): readonly string[] {
  try {
    const { error, nodeErrors } = judge(workflow, catalog, hasFile)
    const found = Object.entries(nodeErrors).flatMap(([id, { class_type, errors }]) =>
      errors.map(({ message, details }) => `node ${id} (${class_type}): ${message}: ${details}`),
    )
    return found.length > 0 || error === null ? found : [[error.message, error.details].filter(Boolean).join(': ')]
  } catch (error) {
    if (error instanceof GraphError) return [error.message]
    throw error
  }
}

function judge(workflow: JsonValue, catalog: NodeCatalog, hasFile: (name: string) => boolean): ValidationResult {
  const graph = replaceClasses(readGraph(workflow), catalog)
  const checkInput = createFileCheck(findFileNames(graph, catalog), { hasFile, hasFolder: () => false })
  return validate(graph, { catalog, checkInput })
}

/** Throws invalid_workflow for what is no graph at all, such as a value of the caller that is nested too deep. */
function mustJudge(...graph: Parameters<typeof judge>): ValidationResult {
  try {
    return judge(...graph)
  } catch (error) {
    throw asRefusal(error)
  }
}

function toRun({ accountId, id, workflow, files }: WorkflowCall, engine: Pick<Engine, 'catalog'>): EngineRun {
  const result = mustJudge(workflow, engine.catalog(), (name) => files.has(name))
  if (result.goodOutputs.length === 0 || Object.keys(result.nodeErrors).length > 0) {
    throw new ServiceError('invalid_workflow', 'the workflow of this model does not run on this engine')
  }
  return {
    jobId: id,
    accountId,
    attempt: 1,
    claimId: id,
    graph: result.graph,
    inputs: new Map(Array.from(files, ([name, bytes]) => [name, toInput(name, bytes)])),
    extraData: null,
    // Nothing is kept, so every run may count from one.
    reserveOutputNumbers: async () => 1,
  }
}

function toInput(name: string, bytes: Buffer): EngineInput {
  return {
    hash: hash('sha256', bytes),
    sizeBytes: bytes.length,
    contentType: typeFromName(name) ?? FALLBACK_TYPE,
    localPath: null,
    read: () => inOneChunk(bytes),
  }
}

async function collect(
  report: NodeReport,
  made: { readonly files: MadeFile[]; readonly texts: string[] },
): Promise<void> {
  for (const item of Object.values(report).flat()) {
    if (item.kind === 'value') {
      made.texts.push(typeof item.value === 'string' ? item.value : stringifyLosslessJson(item.value as JsonValue))
      continue
    }
    const chunks: Uint8Array[] = []
    for await (const chunk of item.read()) chunks.push(chunk)
    item.release?.()
    const contentType = item.contentType ?? typeFromName(item.filename) ?? FALLBACK_TYPE
    made.files.push({ name: item.filename, contentType, bytes: Buffer.concat(chunks) })
  }
}

/** Conversions and runs without a service. A run gives the same progress, outputs and end as a job with the same graph. */
import type { Graph } from '../../engine/graph/graph.ts'
import type { NodeCatalog } from '../../engine/graph/node-catalog.ts'
import type { EngineEvent } from '../../engine/graph/run-event.ts'
import { systemClock } from '../../lib/clock.ts'
import { readEmbeddedTexts } from '../../lib/files/embedded-texts.ts'
import type { ByteSource } from '../../lib/files/mp4-boxes.ts'
import type { JsonObject, JsonValue } from '../../lib/json/lossless-json.ts'
import { ServiceError } from '../domain/errors.ts'
import type { Progress } from '../domain/jobs/job.ts'
import { type OutputDraft, toOutputDraft } from '../domain/jobs/outputs/run-outputs.ts'
import { applyEngineEvent, type RunOutcome, startFold, toProgress } from '../domain/jobs/run/apply-engine-event.ts'
import {
  type ConvertedFile,
  carriedTexts,
  createConvertFile,
  withoutOddNumbers,
} from '../domain/workflows/convert/convert-file.ts'

export type LocalDraft = Pick<OutputDraft, 'name' | 'nodeId' | 'read'>
export type LocalOutcome = RunOutcome

type LocalRunStep =
  | { readonly kind: 'progress'; readonly progress: Progress }
  | { readonly kind: 'output'; readonly output: LocalDraft }
  | { readonly kind: 'ended'; readonly outcome: LocalOutcome }

export async function* readLocalRun(events: AsyncIterable<EngineEvent>, graph: Graph): AsyncGenerator<LocalRunStep> {
  let state = startFold({ graph, earlierProgress: null })
  for await (const event of events) {
    const before = state
    state = applyEngineEvent(before, event)
    if (state.progress !== before.progress) yield { kind: 'progress', progress: toProgress(state.progress) }
    for (const reported of state.fresh) {
      const output = toOutputDraft(reported, { previewOutputs: false })
      if (output !== null && output.location?.isUnlisted !== true) yield { kind: 'output', output }
    }
    if (state.outcome !== null) yield { kind: 'ended', outcome: state.outcome }
  }
}

/** Workflow files without a service: what a file carries, and its conversion for an engine in this process. */
type LocalConversion =
  | { readonly kind: 'converted'; readonly file: ConvertedFile }
  | { readonly kind: 'refused'; readonly message: string; readonly nodeErrors: JsonObject }

export async function convertLocally(content: JsonValue, catalog: NodeCatalog): Promise<LocalConversion> {
  const convertFile = createConvertFile({ catalog: () => catalog, clock: systemClock, random: Math.random })
  try {
    return { kind: 'converted', file: await convertFile(content, null) }
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    const nodeErrors = (error.details?.['node_errors'] ?? {}) as JsonObject
    return { kind: 'refused', message: error.message, nodeErrors }
  }
}

/** The JSON texts that a media file carries, the better one first; null when it is no such file. */
export function readCarriedTexts(source: ByteSource): string[] | null {
  const texts = readEmbeddedTexts(source)
  return texts === null ? null : carriedTexts(texts).map(withoutOddNumbers)
}

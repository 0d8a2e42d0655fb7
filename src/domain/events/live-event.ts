/**
 * The live events of a run: those of its engine, without anything that only this process can use. A reported file is
 * represented by its name; its bytes are read by the code that commits the output.
 */
import type {
  EngineEvent,
  EngineFailure,
  NodeRef,
  ReportedFile,
  ReportedValue,
} from '../../../engine/graph/run-event.ts'

type LiveFile = Omit<ReportedFile, 'read' | 'heldBytes'>
export type LiveReport = Readonly<Record<string, readonly (LiveFile | ReportedValue)[]>>
export type LiveFailure = Omit<EngineFailure, 'refusal'>

export type LiveEvent =
  | Exclude<EngineEvent, { readonly type: 'node_report' | 'failed' }>
  | ({ readonly type: 'node_report'; readonly report: LiveReport; readonly cached: boolean } & NodeRef)
  | { readonly type: 'failed'; readonly failure: LiveFailure }

/** The same event for those that tell nothing more than they may; a copy of the others. */
export function toLiveEvent(event: EngineEvent): LiveEvent {
  if (event.type === 'node_report') return { ...event, report: toLiveReport(event.report) }
  if (event.type !== 'failed') return event
  if (event.failure.refusal === undefined) return { type: 'failed', failure: event.failure }
  const { refusal: _, ...failure } = event.failure
  return { type: 'failed', failure }
}

function toLiveReport(report: Extract<EngineEvent, { type: 'node_report' }>['report']): LiveReport {
  return Object.fromEntries(
    Object.entries(report).map(([key, items]) => [
      key,
      items.map((item) => (item.kind === 'value' ? item : toLiveFile(item))),
    ]),
  )
}

function toLiveFile({ kind, filename, subfolder, folder, contentType }: ReportedFile): LiveFile {
  return { kind, filename, subfolder, folder, contentType }
}

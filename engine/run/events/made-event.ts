/**
 * Engine events as the engine thread makes them: reports carry their bytes, since a function cannot cross threads. Also
 * what an event weighs while it is kept, and which ones may be left out when too much is kept.
 */
import type { EngineEvent, NodeRef } from '../../graph/run-event.ts'
import type { MadeReport } from '../../node/node-context.ts'
import { weighJson } from '../../values/value-weight.ts'

export type RunEvent =
  | Exclude<EngineEvent, { type: 'node_report' }>
  | ({ readonly type: 'node_report'; readonly report: MadeReport; readonly cached: boolean } & NodeRef)

const EVENT_WEIGHT = 256

/** The same on every thread that counts. */
export function weightOf(event: RunEvent): number {
  if (event.type === 'preview') return EVENT_WEIGHT + event.bytes.byteLength
  if (event.type === 'log' || event.type === 'node_text') return EVENT_WEIGHT + event.text.length
  if (event.type !== 'node_report') return EVENT_WEIGHT
  let weight = EVENT_WEIGHT
  for (const items of Object.values(event.report)) {
    for (const item of items) weight += item.kind === 'file' ? item.bytes.byteLength : weighJson(item.value)
  }
  return weight
}

/** Newer progress and previews make older ones of their node pointless. A preview that is a result is always kept. */
export function isReplacedBy(older: RunEvent | undefined, newer: RunEvent): boolean {
  if (older === undefined || older.type !== newer.type) return false
  if (newer.type !== 'node_progress' && newer.type !== 'preview') return false
  if (older.type === 'preview' && older.isResult === true) return false
  return (older as typeof newer).nodeId === newer.nodeId
}

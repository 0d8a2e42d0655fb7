/**
 * Engine events as the engine thread makes them: reports carry their bytes, or say where these lie, since a function cannot cross
 * threads. Also what an event weighs while it is kept, and which ones may be left out when too much is kept.
 */
import type { EngineEvent, NodeRef } from '../../graph/run-event.ts'
import type { MadeFile, MadeValue } from '../../node/node-context.ts'
import { weighJson } from '../../values/value-weight.ts'

/** Bytes in a file beside the message. */
interface BytesAside {
  /** Its name in the folder that the opener gave. */
  readonly file: number
  readonly at: number
  readonly byteLength: number
}

export type SentFile = Omit<MadeFile, 'bytes'> & { readonly bytes: MadeFile['bytes'] | BytesAside }
export type SentReport = Readonly<Record<string, readonly (SentFile | MadeValue)[]>>

export type RunEvent =
  | Exclude<EngineEvent, { type: 'node_report' }>
  | ({ readonly type: 'node_report'; readonly report: SentReport; readonly cached: boolean } & NodeRef)

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

/** Engine events as the engine thread makes them: reports carry their bytes, since a function cannot cross threads. */
import type { EngineEvent, NodeRef } from '../../graph/run-event.ts'
import type { MadeReport } from '../../node/node-context.ts'

export type RunEvent =
  | Exclude<EngineEvent, { type: 'node_report' }>
  | ({ readonly type: 'node_report'; readonly report: MadeReport; readonly cached: boolean } & NodeRef)

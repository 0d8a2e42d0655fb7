/**
 * Events of nodes that run at the same time, passed on one node after the other: those of the node that started first at once,
 * those of the others when it is done. So every reader sees whole nodes in the order in which they were started.
 * What waits is bounded: of a flood of progress and previews only the newest is kept.
 */
import type { EngineEvent, NodeRef } from '../../graph/run-event.ts'
import type { MadeFile, MadeValue } from '../../node/node-context.ts'
import { weighJson } from '../../values/value-weight.ts'

// Engine events as the engine thread makes them: reports carry their bytes, or say where these lie, since a function cannot cross
// threads. Also what an event weighs while it is kept, and which ones may be left out when too much is kept.

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

/** An event that belongs to a node. */
type NodeEvent = { [Type in RunEvent['type']]: Extract<RunEvent, { type: Type } & NodeRef> }[RunEvent['type']]

export interface NodeVoice {
  send(event: NodeEvent): void
  /** The node has nothing more to say for now. */
  close(): void
}

export interface EventLine {
  open(): NodeVoice
  /** Tells everything that still waits: the run ends. */
  flush(): void
}

// How much a node may say while it waits to be heard before only its newest progress and previews are kept.
const MAX_WAITING_WEIGHT = 1_048_576

interface Speaker {
  waiting: NodeEvent[]
  weight: number
  isClosed: boolean
}

export function createEventLine(emit: (event: RunEvent) => void): EventLine {
  const speakers: Speaker[] = []

  function tell(speaker: Speaker): void {
    for (const event of speaker.waiting) emit(event)
    speaker.waiting = []
    speaker.weight = 0
  }

  function advance(): void {
    while (speakers.length > 0) {
      tell(speakers[0])
      if (!speakers[0].isClosed) return
      speakers.shift()
    }
  }

  function keepNewest(speaker: Speaker, event: NodeEvent): void {
    speaker.waiting = speaker.waiting.filter((older) => !isReplacedBy(older, event))
    speaker.weight = speaker.waiting.reduce((sum, kept) => sum + weightOf(kept), 0)
  }

  return {
    open() {
      const speaker: Speaker = { waiting: [], weight: 0, isClosed: false }
      speakers.push(speaker)
      return {
        send(event) {
          if (speaker === speakers[0]) {
            emit(event)
            return
          }
          if (speaker.weight > MAX_WAITING_WEIGHT) keepNewest(speaker, event)
          speaker.weight += weightOf(event)
          speaker.waiting.push(event)
        },
        close() {
          speaker.isClosed = true
          advance()
        },
      }
    },
    flush() {
      for (const speaker of speakers) tell(speaker)
    },
  }
}

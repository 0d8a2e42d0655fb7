/**
 * Events of nodes that run at the same time, passed on one node after the other: those of the node that started first at once,
 * those of the others when it is done. So every reader sees whole nodes in the order in which they were started.
 * What waits is bounded: of a flood of progress and previews only the newest is kept.
 */
import type { NodeRef } from '../../graph/run-event.ts'
import { isReplacedBy, type RunEvent, weightOf } from './made-event.ts'

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

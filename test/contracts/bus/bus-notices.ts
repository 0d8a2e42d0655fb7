/** Notices of every kind, published and heard, for the tests of buses. */
import type { NodeRef } from '../../../engine/graph/run-event.ts'
import type { EventBus, JobChanged, JobLive } from '../../../src/domain/events/event-bus.ts'
import type { LiveEvent } from '../../../src/domain/events/live-event.ts'

export const CHANGED: JobChanged = { jobId: 'job', accountId: 'account', version: 3 }
export const NODE: NodeRef = { nodeId: '1', classType: 'C', displayNodeId: '1', parentNodeId: null }

export function live(text: string, jobId = 'job', accountId = 'account'): JobLive<LiveEvent> {
  return { jobId, accountId, event: { type: 'node_text', ...NODE, text } }
}

export function textOf({ event }: JobLive<LiveEvent>): string {
  return event.type === 'node_text' ? event.text : event.type
}

/** Everything that a bus brings, as it came. */
export function hearAll(bus: EventBus<LiveEvent>): unknown[] {
  const seen: unknown[] = []
  bus.onChanged(({ isRemote: _, ...notice }) => seen.push(['changed', notice]))
  bus.onLive({ jobId: 'job' }, (notice) => seen.push(['live', notice]))
  bus.onWork((pool) => seen.push(['work', pool]))
  bus.onDirectory((notice) => seen.push(['directory', notice]))
  bus.onCall((notice) => seen.push(['call', notice]))
  bus.onGap(() => seen.push(['gap']))
  return seen
}

export function publishAll(bus: EventBus<LiveEvent>): unknown[] {
  const keys = { directory: 'keys', version: 7 } as const
  const call = { callId: 'call', accountId: 'account', move: 'stop' } as const
  bus.publishChanged(CHANGED)
  bus.publishChanged({ ...CHANGED, version: 4, move: 'ended' })
  bus.publishLive(live('a line'))
  bus.publishWork()
  bus.publishWork('demo')
  bus.publishDirectory(keys)
  bus.publishCall(call)
  return [
    ['changed', CHANGED],
    ['changed', { ...CHANGED, version: 4, move: 'ended' }],
    ['live', live('a line')],
    ['work', undefined],
    ['work', 'demo'],
    ['directory', keys],
    ['call', call],
  ]
}

import type { EngineState } from '../../../api/admin.ts'
import { type StateLook, StatePill } from '../../../components/status-pill.tsx'

const LOOKS: Readonly<Record<EngineState, StateLook>> = {
  ready: ['check', 'Ready', 'succeeded'],
  starting: ['clock', 'Starting', 'running'],
  standby: ['clock', 'Standby', 'queued'],
  draining: ['stop', 'Draining', 'canceling'],
  cordoned: ['pause', 'Cordoned', 'canceling'],
  quarantined: ['warn', 'Quarantined', 'failed'],
  lost: ['cross', 'Lost', 'failed'],
}

/** Sick ones first. */
const ORDER: readonly EngineState[] = ['lost', 'quarantined', 'draining', 'cordoned', 'starting', 'ready', 'standby']

export function engineOrder(state: EngineState): number {
  return ORDER.indexOf(state)
}

export function EngineStateWord({ state }: { readonly state: EngineState }) {
  return <StatePill look={LOOKS[state]} />
}

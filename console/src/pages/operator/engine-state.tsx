import type { EngineState } from '../../api/admin.ts'
import { Icon, type IconName } from '../../components/icon.tsx'

const LOOKS: Readonly<Record<EngineState, readonly [IconName, string, string]>> = {
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
  const [icon, word, colour] = LOOKS[state]
  return (
    <span class="status" data-status={colour}>
      <Icon name={icon} />
      {word}
    </span>
  )
}

/** A state is a drawing, a word and a colour, never a colour alone. */
import type { JobStatus } from '../api/summary.ts'
import { Icon, type IconName } from './icon.tsx'

/** The colour is named by the state of a job that has it. */
export type StateLook = readonly [icon: IconName, word: string, colour: JobStatus]

const LOOKS: Readonly<Record<JobStatus, StateLook>> = {
  queued: ['clock', 'Waiting', 'queued'],
  running: ['play', 'Running', 'running'],
  canceling: ['stop', 'Canceling', 'canceling'],
  succeeded: ['check', 'Succeeded', 'succeeded'],
  failed: ['cross', 'Failed', 'failed'],
  canceled: ['stop', 'Canceled', 'canceled'],
  expired: ['clock', 'Expired', 'expired'],
}

export function statusWord(status: JobStatus): string {
  return LOOKS[status][1]
}

export function StatusPill({ status }: { readonly status: JobStatus }) {
  return <StatePill look={LOOKS[status]} />
}

/** The state of anything: a job, a node, an engine. */
export function StatePill({ look: [icon, word, colour] }: { readonly look: StateLook }) {
  return (
    <span class="status" data-status={colour}>
      <Icon name={icon} />
      <span>{word}</span>
    </span>
  )
}

/** A state is a drawing, a word and a colour, never a colour alone. */
import type { JobStatus } from '../api/summary.ts'
import { Icon, type IconName } from './icon.tsx'

const LOOKS: Readonly<Record<JobStatus, readonly [IconName, string]>> = {
  queued: ['clock', 'Waiting'],
  running: ['play', 'Running'],
  canceling: ['stop', 'Canceling'],
  succeeded: ['check', 'Succeeded'],
  failed: ['cross', 'Failed'],
  canceled: ['stop', 'Canceled'],
  expired: ['clock', 'Expired'],
}

export function statusWord(status: JobStatus): string {
  return LOOKS[status][1]
}

export function StatusPill({ status, isBare = false }: { readonly status: JobStatus; readonly isBare?: boolean }) {
  const [icon, word] = LOOKS[status]
  return (
    <span class={`status ${isBare ? 'bare' : ''}`} data-status={status} title={isBare ? word : undefined}>
      <Icon name={icon} />
      <span class={isBare ? 'unseen' : ''}>{word}</span>
    </span>
  )
}

import type { NodeState } from '../../api/job-detail.ts'
import { Icon, type IconName } from '../../components/icon.tsx'

const LOOKS: Readonly<Record<NodeState, readonly [IconName, string, string]>> = {
  waiting: ['clock', 'waiting', 'queued'],
  running: ['play', 'running', 'running'],
  done: ['check', 'done', 'succeeded'],
  cached: ['copy', 'cached', 'queued'],
  failed: ['cross', 'failed', 'failed'],
  skipped: ['stop', 'not run', 'canceled'],
}

export function NodeStateWord({ state }: { readonly state: NodeState }) {
  const [icon, word, colour] = LOOKS[state]
  return (
    <span class="status" data-status={colour}>
      <Icon name={icon} />
      {word}
    </span>
  )
}

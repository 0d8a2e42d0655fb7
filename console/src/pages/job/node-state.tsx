import type { NodeState } from '../../api/job-detail.ts'
import { type StateLook, StatePill } from '../../components/status-pill.tsx'

const LOOKS: Readonly<Record<NodeState, StateLook>> = {
  waiting: ['clock', 'waiting', 'queued'],
  running: ['play', 'running', 'running'],
  done: ['check', 'done', 'succeeded'],
  cached: ['copy', 'cached', 'queued'],
  failed: ['cross', 'failed', 'failed'],
  skipped: ['stop', 'not run', 'canceled'],
}

export function NodeStateWord({ state }: { readonly state: NodeState }) {
  return <StatePill look={LOOKS[state]} />
}

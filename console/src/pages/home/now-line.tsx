import { hrefOf } from '../../routes.ts'
import { counts } from '../../state/live/live.ts'
import { formatCount } from '../../text/format.ts'
import type { HomeView } from './home-state.ts'
import { RunExample } from './run-example.tsx'

export function NowLine({ view, failedToday }: { readonly view: HomeView; readonly failedToday: number }) {
  const running = (counts.value?.running ?? 0) + (counts.value?.canceling ?? 0)
  const waiting = counts.value?.queued ?? view.waiting.length
  return (
    <div class="now-line">
      <a class="figure" href={hrefOf('/jobs?status=running,canceling')}>
        <strong class="number" data-status="running">
          {formatCount(counts.value === null ? view.running.length : running)}
        </strong>{' '}
        running
      </a>
      <a class="figure" href={hrefOf('/jobs?status=queued')}>
        <strong class="number">{formatCount(waiting)}</strong> waiting
      </a>
      <a class="figure" href={hrefOf('/jobs?status=failed&since=today')}>
        <strong class="number" data-status={failedToday > 0 ? 'failed' : undefined}>
          {formatCount(failedToday)}
        </strong>{' '}
        failed today
      </a>
      <div class="top-line-space" />
      <RunExample />
      <a class="button primary" href={hrefOf('/run')}>
        Run a workflow
      </a>
    </div>
  )
}

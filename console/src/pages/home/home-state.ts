/** What Home shows, computed from the jobs that this page knows. Pure. */
import type { Summary } from '../../api/summary.ts'

export interface HomeView {
  readonly running: readonly Summary[]
  readonly waiting: readonly Summary[]
  /** Failed, of those submitted since midnight, as the list behind the figure has them; newest first. */
  readonly failed: readonly Summary[]
  readonly codes: readonly { readonly code: string; readonly count: number }[]
}

export function toHomeView(jobs: Iterable<Summary>, since: number): HomeView {
  const running: Summary[] = []
  const waiting: Summary[] = []
  const failed: Summary[] = []
  for (const job of jobs) {
    if (job.status === 'running' || job.status === 'canceling') running.push(job)
    else if (job.status === 'queued') waiting.push(job)
    else if (job.status === 'failed' && Date.parse(job.created_at) >= since) failed.push(job)
  }
  running.sort((a, b) => compare(a.started_at ?? a.created_at, b.started_at ?? b.created_at) || compare(a.id, b.id))
  waiting.sort((a, b) => place(a) - place(b) || b.priority - a.priority || compare(a.created_at, b.created_at))
  failed.sort((a, b) => compare(b.completed_at ?? b.created_at, a.completed_at ?? a.created_at))
  const counted = new Map<string, number>()
  for (const { error } of failed) {
    const code = error?.code ?? 'unknown'
    counted.set(code, (counted.get(code) ?? 0) + 1)
  }
  const codes = [...counted].map(([code, count]) => ({ code, count })).sort((a, b) => b.count - a.count)
  return { running, waiting, failed, codes }
}

function place({ queue_position }: Summary): number {
  return queue_position ?? Number.MAX_SAFE_INTEGER
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

import type { RunVerdict } from '../end/end-of-run.ts'
import type { JobLog } from '../job.ts'
import type { Claim, Lease } from '../job-store.ts'
import { statesBeforeEnd } from '../transitions.ts'
import type { Committer } from './committer.ts'
import type { EngineListener } from './engine-listener.ts'
import { readLog } from './record/log-lines.ts'
import type { RunDeps } from './run-deps.ts'
import { toTerminalEvent } from './run-notices.ts'

export interface EndingRun {
  readonly claim: Claim
  readonly lease: Lease
  readonly version: number
  readonly committer: Committer
  /** Of a success: the key of its result; null: it has none, or nobody wants it. */
  resultKey(): string | null
  readonly heard: Pick<EngineListener, 'fold' | 'recorder' | 'marks' | 'terminalEvent'>
  /** Called before the notice of this version is published. */
  onVersion(version: number): void
}

type FinishVerdict = Extract<RunVerdict, { verdict: 'finish' }>

/** `refused`: the lease was lost, and nothing was written. */
export async function writeEnd(
  { status: reached, error: reason }: FinishVerdict,
  run: EndingRun,
  deps: RunDeps,
): Promise<'written' | 'refused'> {
  if (await withdraw(run, deps)) return 'written'
  const { clock, bus, observer, extraData } = deps
  const { id: jobId, accountId, startedAt } = run.claim.job
  const at = clock.now()
  const record = run.heard.recorder.finish(at.getTime())
  const resultKey = reached === 'succeeded' ? run.resultKey() : null
  const end = { status: reached, from: statesBeforeEnd(reached), at, error: reason, record, resultKey }
  const { outcome, finish } = await run.committer.finish(end, toJobLog(run.heard, at))
  if (outcome.outcome === 'lost') return 'refused'
  const { status, error } = finish
  run.onVersion(outcome.version)
  extraData.forget(jobId)
  if (outcome.job !== undefined) deps.onStored?.(outcome.job)
  bus.publishChanged?.({ jobId, accountId, version: outcome.version, move: 'ended' })
  bus.publishLive({ jobId, accountId, event: toTerminalEvent(status, error, run.heard.terminalEvent) })
  bus.publishWork?.()
  const executionMs = startedAt === null ? null : at.getTime() - startedAt.getTime()
  observer.finished({ jobId, accountId, status, code: error?.code ?? null, executionMs })
  return 'written'
}

async function withdraw(run: EndingRun, { verdicts, clock, extraData, bus }: RunDeps): Promise<boolean> {
  const { id: jobId, accountId } = run.claim.job
  const { terminalEvent } = run.heard
  const refusal = terminalEvent?.type === 'failed' ? terminalEvent.failure.refusal : undefined
  if (refusal === undefined || verdicts?.hold(jobId) !== true) return false
  if (!(await verdicts.withdraw(run.lease, clock.now()))) return false
  run.committer.stop()
  const version = run.version + 1
  run.onVersion(version)
  extraData.forget(jobId)
  bus.publishChanged?.({ jobId, accountId, version, move: 'ended' })
  bus.publishWork?.()
  verdicts.refused(jobId, refusal)
  return true
}

function toJobLog({ fold, marks }: EndingRun['heard'], capturedAt: Date): JobLog | null {
  const { text, truncated } = readLog(fold.log)
  if (text === '' && !truncated) return null
  return { text, truncated, capturedAt, complete: true, marks: marks.finish() }
}

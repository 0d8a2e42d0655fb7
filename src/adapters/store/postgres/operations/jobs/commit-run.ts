/**
 * What workers write travels together, of all runs of a node: progress alone in one relaxed statement, everything else in one durable
 * transaction. One that cannot be written fails alone.
 */
import { isStoreAway } from '../../../../../domain/errors.ts'
import type { CommitOutcome, JobStore } from '../../../../../domain/jobs/job-store.ts'
import { type Commit, isProgressOnly, toCommit, writeCommits, writeProgress } from '../../../stores/jobs/commit-run.ts'
import { createGather } from '../../database/gather.ts'
import { runOn } from '../../shared-stores.ts'
import type { StoreParts } from '../../stores/store-parts.ts'

// A batch stays short, so that the accounts that it locks are free again soon.
const MAX_COMMITS = 64
const MAX_BYTES = 4_194_304
const MAX_BATCHES = 2

export function createCommitRun({ durable, relaxed, clock }: StoreParts): JobStore['commit'] {
  const nameOf = ({ jobId }: Commit) => jobId
  const commitProgress = createGather<Commit, CommitOutcome>({
    run: (commits) => runOn(relaxed, writeProgress(commits)),
    onBatch: relaxed.noteBatch,
    maxItems: MAX_COMMITS,
    maxRunning: 1,
    nameOf,
  })
  // A repeated write adds no output twice, and a repeated end is recognised by its lease.
  const writeTogether = (commits: readonly Commit[]) =>
    durable.transaction((tx) => runOn(tx, writeCommits(commits)), { isRepeatable: true })
  const commitDurably = createGather<Commit, () => CommitOutcome>({
    run: (commits) => eachAnswered(commits, writeTogether),
    onBatch: durable.noteBatch,
    maxItems: MAX_COMMITS,
    maxWeight: MAX_BYTES,
    weigh: ({ log, finish }) => (log?.text.length ?? 0) + (finish?.record?.length ?? 0),
    maxRunning: MAX_BATCHES,
    nameOf,
  })
  return async (lease, change) => {
    const commit = toCommit(lease, change, clock.now())
    if (isProgressOnly(commit)) return commitProgress(commit)
    const answer = await commitDurably(commit)
    return answer()
  }
}

/** What fails for one of them is written again one by one, so that only the one at fault is refused. */
async function eachAnswered(
  commits: readonly Commit[],
  write: (commits: readonly Commit[]) => Promise<CommitOutcome[]>,
): Promise<(() => CommitOutcome)[]> {
  try {
    return (await write(commits)).map((outcome) => () => outcome)
  } catch (error) {
    if (isStoreAway(error) || commits.length === 1) throw error
  }
  const settled = []
  for (const commit of commits) settled.push(...(await Promise.allSettled([write([commit])])))
  return settled.map((result) => () => {
    if (result.status === 'rejected') throw result.reason
    return result.value[0] ?? { outcome: 'lost' }
  })
}

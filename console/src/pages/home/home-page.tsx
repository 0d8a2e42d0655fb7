/** What happens now: runs with their previews, what waits, what failed today, the newest results. */
import { useEffect, useState } from 'preact/hooks'
import { ApiError } from '../../api/client.ts'
import { readFilter, toMoment } from '../../api/filter.ts'
import { listJobs } from '../../api/jobs.ts'
import { ErrorBox } from '../../components/error-box.tsx'
import { Skeleton } from '../../components/skeleton.tsx'
import { Words } from '../../components/words.tsx'
import { serverNow } from '../../state/clock.ts'
import { counts, greetings, knownJobs, polls, refreshStates } from '../../state/live/live.ts'
import { session } from '../../state/session.ts'
import { EngineLine } from './engine-line.tsx'
import { FailedToday } from './failed-today.tsx'
import { FirstStart } from './first-start.tsx'
import { toHomeView } from './home-state.ts'
import { NewestResults } from './newest-results.tsx'
import { NowLine } from './now-line.tsx'
import { RunCard } from './run-card.tsx'
import { WaitingList } from './waiting-list.tsx'

const PREVIEWS = 2
const RUNNING = 'status=running,canceling'

interface Loaded {
  readonly error: ApiError | null
  readonly isReady: boolean
  readonly failedToday: number
}

async function ask(): Promise<number> {
  const now = serverNow()
  const list = (query: string, limit: number, withCounts = false) =>
    listJobs(readFilter(new URLSearchParams(query)), { now, limit, withCounts })
  const [, , page] = await Promise.all([
    refreshStates(['running', 'canceling'], 'newest', () => list(RUNNING, 50)),
    refreshStates(['queued'], 'oldest', () => list('status=queued&sort=oldest', 20)),
    refreshStates([], 'newest', () => list('status=failed&since=today', 100, true)),
  ])
  return page.counts?.failed ?? page.jobs.length
}

function useHome(): Loaded {
  const [loaded, setLoaded] = useState<Loaded>({ error: null, isReady: false, failedToday: 0 })
  const [tries, setTries] = useState(0)
  const mark = `${greetings.value} ${polls.value} ${tries}`
  useEffect(() => {
    let isGone = false
    let retry: ReturnType<typeof setTimeout> | undefined
    ask().then(
      (failedToday) => !isGone && setLoaded({ error: null, isReady: true, failedToday }),
      (error) => {
        if (isGone || !(error instanceof ApiError)) return
        setLoaded((before) => ({ ...before, error }))
        retry = setTimeout(() => setTries(tries + 1), 3000)
      },
    )
    return () => {
      isGone = true
      clearTimeout(retry)
    }
  }, [mark])
  return loaded
}

export function HomePage() {
  const { error, isReady, failedToday } = useHome()
  const since = Date.parse(toMoment('today', serverNow()))
  const view = toHomeView(knownJobs.value.values(), since)
  const total = Object.values(counts.value ?? {}).reduce((sum, count) => sum + count, 0)
  if (session.value?.signed_in !== true)
    return (
      <section class="page">
        <h1>Home</h1>
        <p>Signed in as the operator: the places are at the side.</p>
      </section>
    )
  const isFirst = isReady && total === 0 && knownJobs.value.size === 0
  return (
    <section class="page home">
      <h1 class="unseen">Home</h1>
      <NowLine view={view} failedToday={Math.max(failedToday, view.failed.length)} />
      <EngineLine />
      {error !== null && !isReady && <ErrorBox error={error} />}
      {error !== null && isReady && (
        <p class="stale-line" role="status">
          <Words text={error.message} />: the last answer is shown, and asked again.
        </p>
      )}
      {!isReady && error === null && <Skeleton rows={2} kind="card" />}
      {isFirst && <FirstStart />}
      {isReady && !isFirst && (
        <>
          <div class="home-now">
            <section class="home-running" aria-labelledby="home-running">
              <h2 id="home-running">Running</h2>
              {view.running.length === 0 && <p class="dim">Nothing runs at the moment.</p>}
              <div class="run-cards">
                {view.running.slice(0, 8).map((job, index) => (
                  <RunCard key={job.id} job={job} hasPreview={index < PREVIEWS} />
                ))}
              </div>
            </section>
            <WaitingList waiting={view.waiting} total={counts.value?.queued ?? view.waiting.length} />
          </div>
          <FailedToday view={view} total={Math.max(failedToday, view.failed.length)} />
          <NewestResults />
        </>
      )}
    </section>
  )
}

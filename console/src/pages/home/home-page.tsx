/** What happens now: runs with their previews, what waits, what failed today, the newest results. */
import { useEffect, useState } from 'preact/hooks'
import { ApiError } from '../../api/client.ts'
import { readFilter, toMoment } from '../../api/filter.ts'
import { getEngines, listJobs } from '../../api/jobs.ts'
import { Icon } from '../../components/icon.tsx'
import { ErrorBox, Skeleton } from '../../components/state.tsx'
import { CopyButton, showToast, Words } from '../../components/text.tsx'
import { BASE, hrefOf, navigate } from '../../routes.ts'
import { serverNow } from '../../state/clock.ts'
import { submitWorkflow } from '../../state/deeds.ts'
import { counts, engineNews, greetings, knownJobs, polls, refreshStates } from '../../state/live/live.ts'
import { useReloadOn, useResource } from '../../state/resource.ts'
import { session } from '../../state/session.ts'
import { engineWords, formatCount } from '../../text/format.ts'
import { EXAMPLE_WORKFLOW } from './example.ts'
import { FailedToday, type HomeView, NewestResults, RunCard, toHomeView, WaitingList } from './home-lists.tsx'

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

/** How the engines stand, asked again when the stream says that one changed, or that a job began or ended. */
function EngineLine() {
  const resource = useResource('engines', getEngines)
  useReloadOn(`${engineNews.value} ${greetings.value} ${polls.value} ${counts.value?.running}`, resource.reload)
  const { value: figures } = resource.data
  // A line that says nothing yet takes no room; its failure is that of the whole page, which says so.
  if (figures === null) return null
  const { icon, text, colour } = engineWords(figures)
  const inside = (
    <>
      <span data-status={colour}>
        <Icon name={icon} />
      </span>{' '}
      {text}
    </>
  )
  return session.value?.operator === true ? (
    <a class="engine-line" href={hrefOf('/operator/engines')}>
      {inside}
    </a>
  ) : (
    <p class="engine-line">{inside}</p>
  )
}

function NowLine({ view, failedToday }: { readonly view: HomeView; readonly failedToday: number }) {
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

function snippets(): Readonly<Record<string, string>> {
  const address = window.location.origin + BASE
  const needsKey = session.value?.needs_credential === true
  return {
    SDK: [
      "import { Comfy } from '@comfyorg/sdk'",
      `process.env.COMFY_BASE_URL = '${address}'`,
      ...(needsKey ? ['// COMFY_API_KEY in the environment'] : []),
      "const job = await new Comfy().run(await new Comfy().workflows.fromFile('workflow.json'))",
    ].join('\n'),
    curl: [
      `jq '{workflow: .}' workflow.json |`,
      `  curl -sf ${address}/api/v2/jobs${needsKey ? ' -H "Authorization: Bearer $ATELIER_KEY"' : ''} -d @-`,
    ].join('\n'),
    'command line': `npx atelier run workflow.json --out results`,
    'ComfyUI client': `# any client of ComfyUI or of the hosted API: set its address to\n${address}`,
  }
}

/** Nothing has run yet: three ways to begin. */
function FirstStart() {
  const all = snippets()
  const [chosen, setChosen] = useState(Object.keys(all)[0])
  return (
    <div class="first-start">
      <section class="card" aria-labelledby="first-example">
        <h2 id="first-example">See it work</h2>
        <p>A small workflow of four nodes that makes a picture. It needs nothing.</p>
        <RunExample isPrimary />
      </section>
      <section class="card" aria-labelledby="first-workflow">
        <h2 id="first-workflow">Run a workflow of yours</h2>
        <p>Drop a JSON file, or a picture that ComfyUI saved: it becomes a form.</p>
        <a class="button" href={hrefOf('/run')}>
          Open a workflow
        </a>
      </section>
      <section class="card wide" aria-labelledby="first-client">
        <h2 id="first-client">Connect a program</h2>
        <div class="segments" role="group" aria-label="Client">
          {Object.keys(all).map((name) => (
            <button key={name} type="button" aria-pressed={chosen === name} onClick={() => setChosen(name)}>
              {name}
            </button>
          ))}
        </div>
        <div class="snippet">
          <pre tabIndex={0} aria-label={`${chosen} example`}>
            {all[chosen]}
          </pre>
          <CopyButton text={all[chosen]} label={`Copy the ${chosen} lines`} />
        </div>
      </section>
    </div>
  )
}

/** One press: the example is submitted, and its page shows the picture as soon as it is there. */
function RunExample({ isPrimary = false }: { readonly isPrimary?: boolean }) {
  const [isBusy, setBusy] = useState(false)
  async function run(): Promise<void> {
    setBusy(true)
    try {
      const { id } = await submitWorkflow(EXAMPLE_WORKFLOW, { example: 'colour card' })
      navigate(`/jobs/${id}`)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      showToast(error.message)
    } finally {
      setBusy(false)
    }
  }
  return (
    <button type="button" class={`button ${isPrimary ? 'primary' : ''}`} disabled={isBusy} onClick={() => void run()}>
      <Icon name="play" /> Run the example
    </button>
  )
}

/** One engine: how it fares, what it runs and ran, and what it prints. */
import { signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import {
  type EngineLine,
  type EngineLog,
  getEngine,
  getEngineLog,
  listEngineJobs,
  listProcesses,
} from '../../../api/admin.ts'
import { ApiError } from '../../../api/client.ts'
import { Loaded, Skeleton } from '../../../components/state.tsx'
import { Words } from '../../../components/text.tsx'
import { hrefOf } from '../../../routes.ts'
import { isWatched } from '../../../state/live/presence.ts'
import { zoneName } from '../../../state/preferences.ts'
import { useResource } from '../../../state/resource.ts'
import { formatTime } from '../../../text/format.ts'
import { withoutTerminalCodes } from '../../../text/log-text.ts'
import { OwnedJobs } from '../jobs/all-jobs-page.tsx'
import { useServiceEvents } from '../operator-page.tsx'
import { EngineCard, useEngineDeeds } from './engines-page.tsx'
import { WarmBox } from './warm-box.tsx'

export function EnginePage({ id = '' }: Readonly<Record<string, string>>) {
  const resource = useResource(`operator engine ${id}`, async (abort) => {
    const [engine, { jobs }] = await Promise.all([getEngine(id, abort), listEngineJobs(id, abort)])
    return { engine, jobs }
  })
  useServiceEvents(resource)
  const act = useEngineDeeds(resource.reload)
  return (
    <section class="page">
      <a class="dim back" href={hrefOf('/operator/engines')}>
        ← Engines
      </a>
      <h1>
        Engine <Words text={id} />
      </h1>
      <Loaded resource={resource} skeleton={<Skeleton rows={6} />}>
        {({ engine, jobs }) => (
          <>
            <EngineCard engine={engine} onDeed={(deed) => void act(engine, deed)} />
            <WarmBox id={id} loaded={engine.loaded_weights} onChanged={resource.reload} />
            <h2>Jobs</h2>
            {jobs.length === 0 ? (
              <p class="dim">It has run nothing that is still kept.</p>
            ) : (
              <OwnedJobs label="Jobs of this engine" jobs={jobs} hidesEngine />
            )}
            <p>
              <a href={hrefOf(`/operator/jobs?engine=${encodeURIComponent(id)}`)}>All jobs of this engine</a>
            </p>
          </>
        )}
      </Loaded>
      <h2>Log</h2>
      <EngineLogView id={id} />
    </section>
  )
}

const LOG_EVERY_MS = 2000
const SHOWN_LINES = 1000

/** The newest lines, and what comes behind them. */
function useEngineLog(id: string) {
  const state = useMemo(
    () => ({
      log: signal<EngineLog | null>(null),
      lines: signal<readonly EngineLine[]>([]),
      error: signal<string | null>(null),
    }),
    [id],
  )
  useEffect(() => {
    const { log, lines, error } = state
    const over = new AbortController()
    let isAsking = false
    async function ask(): Promise<void> {
      if (isAsking || !isWatched.value) return
      isAsking = true
      try {
        const answer = await getEngineLog(id, lines.value.at(-1)?.n ?? null, over.signal)
        // After a restart of the service the numbers begin anew.
        const isSame = log.value === null || log.value.began_at === answer.began_at
        lines.value = isSame ? [...lines.value, ...answer.lines].slice(-SHOWN_LINES) : []
        log.value = answer
        error.value = null
      } catch (thrown) {
        if (over.signal.aborted) return
        if (!(thrown instanceof ApiError)) throw thrown
        error.value = thrown.message
      } finally {
        isAsking = false
      }
    }
    void ask()
    const timer = setInterval(() => void ask(), LOG_EVERY_MS)
    return () => {
      over.abort()
      clearInterval(timer)
    }
  }, [id, state])
  return state
}

/** What an engine prints, as far as the process hears it that serves this page; else where it can be read. */
function EngineLogView({ id }: { readonly id: string }) {
  const { log, lines, error } = useEngineLog(id)
  if (log.value === null)
    return error.value === null ? (
      <Skeleton rows={4} />
    ) : (
      <p class="dim">
        <Words text={error.value} />
      </p>
    )
  if (!log.value.is_kept) return <LogElsewhere engineId={id} drivenBy={log.value.driven_by} />
  if (lines.value.length === 0) return <p class="dim">It has printed nothing since it was opened.</p>
  return (
    <div class="log-view" role="log" aria-live="off" aria-label="Lines of the engine" tabIndex={0}>
      {lines.value.toReversed().map((line) => (
        <div key={line.n} class="log-line">
          <span class="log-at dim number">{formatTime(Date.parse(line.at), zoneName())}</span>
          <span class="log-text">
            <Words text={withoutTerminalCodes(line.text)} />
          </span>
        </div>
      ))}
    </div>
  )
}

const UNHEARD = 'This process does not hear what it prints; the jobs that it ran have logs of their own.'

interface LogElsewhereProps {
  readonly engineId: string
  readonly drivenBy: string | null
}

/** Lines are kept in the memory of the process that drives the engine, and nowhere else. */
function LogElsewhere({ engineId, drivenBy }: LogElsewhereProps) {
  const { data } = useResource('operator processes', listProcesses)
  const processes = data.value?.nodes ?? []
  const driver = processes.find(({ id }) => id === drivenBy)
  if (processes.length < 2 || driver === undefined) return <p class="dim">{UNHEARD}</p>
  return (
    <div class="dim">
      <p>
        If its lines are kept, then in the memory of the process that drives it: <Words text={driver.id} /> on{' '}
        <Words text={driver.host} />
        {driver.url !== null && (
          <>
            {' '}
            (<Words text={driver.url} />)
          </>
        )}
        . This page is served by another one.
      </p>
      <p>
        {driver.role === 'worker' ? (
          'That process answers no requests: look at the log of the machine.'
        ) : (
          <>
            Ask there: <code>GET /admin/v1/engines/{encodeURIComponent(engineId)}/log</code>
          </>
        )}{' '}
        The jobs that it ran have logs of their own.
      </p>
    </div>
  )
}

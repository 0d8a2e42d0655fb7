/**
 * `atelier work --join`: a worker that reaches its service over HTTPS alone. It waits for a service that does not answer yet, ends
 * in order at the first SIGTERM or Ctrl-C, and by itself when the service refuses its key or speaks none of its versions.
 */
import { loadConfig } from '../../config/config.ts'
import { isMeantForJoined, type JoinConfig, type JoinFlags, readJoin } from '../../config/join-config.ts'
import type { JoinedWorker } from '../../joined-worker.ts'
import { CommandError, EXIT, printLine, type Terminal } from '../terminal.ts'
import { readVersion } from '../version.ts'
import { openLog } from './open-log.ts'
import { explainStart, listenForStop } from './serve.ts'

export async function workJoined(
  flags: JoinFlags,
  settings: Readonly<Record<string, unknown>>,
  terminal: Terminal,
): Promise<number> {
  const { join, key } = readJoin(flags, terminal.env)
  const { config, secrets, warnings } = loadConfig({
    ...{ flags: settings, env: terminal.env, cwd: terminal.cwd },
    isMeant: isMeantForJoined,
  })
  for (const warning of warnings) printLine(terminal.stderr, `atelier: warning: ${warning}`)
  await using logs = openLog(config.log, { descriptor: terminal.stderr.fd, isTerminal: terminal.stderr.isTTY })
  const { log } = logs
  const stop = listenForStop(terminal)
  const stopped = new AbortController()
  void stop.requested.then(() => stopped.abort())
  let joined: JoinedWorker | null = null
  try {
    const { startJoinedWorker } = await import('../../joined-worker.ts')
    await using health = await openHealth(join, {
      isReady: () => joined?.isReady() === true,
      metrics: () => joined?.metrics ?? null,
    })
    const { pools } = config.jobs
    const { traceHeaders } = secrets
    const common = { key, traceHeaders, log, version: readVersion(), signal: stopped.signal }
    const options = { ...common, ...(pools !== null && { pools }) }
    const starting = startJoinedWorker(config, join, options)
    await using worker = await starting.catch((error: unknown) => {
      if (stopped.signal.aborted) return null
      return explainJoin(error)
    })
    if (worker === null) return EXIT.ok
    joined = worker
    const engines = worker.fleet.status().map(({ id, state }) => (state === 'ready' ? id : `${id} (${state})`))
    printLine(
      terminal.stdout,
      [
        `Atelier ${readVersion()} works for ${join.urls.join(', ')}`,
        `  pools         ${worker.pools.join(', ')}`,
        `  engines       ${engines.join(', ')}`,
        ...(health === null ? [] : [`  health        ${health.url}/healthz`]),
        '  stop          Ctrl-C',
      ].join('\n'),
    )
    const end = await Promise.race([stop.requested, worker.refused])
    // Nothing but another key, or another version, mends that: whoever supervises this process must not start it again.
    if (end instanceof Error) throw new CommandError(`the worker stopped: ${end.message}`, EXIT.usage)
    log.info({ signal: end }, 'draining: no new work, running jobs finish or go back to the queue')
    await worker.drain()
    log.info({}, 'drained')
    return EXIT.ok
  } finally {
    stop.end()
  }
}

/** Open from the start on: a worker that waits for its service lives. */
async function openHealth(
  { health = null }: JoinConfig,
  sources: { isReady(): boolean; metrics(): JoinedWorker['metrics'] | null },
) {
  if (health === null) return null
  const { openJoinedHealth } = await import('../../joined-health.ts')
  return openJoinedHealth(health, sources).catch(explainStart)
}

/** Refusals of the service are shown as they are; anything else is a failure of the start. */
function explainJoin(error: unknown): never {
  if (error instanceof Error && error.name === 'ServiceError') {
    throw new CommandError(`cannot join: ${error.message}`, EXIT.usage)
  }
  return explainStart(error)
}

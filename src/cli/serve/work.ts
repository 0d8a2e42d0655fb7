/**
 * `atelier work`: a process that runs jobs and serves no API, the same as `serve --role worker`. It offers the flags
 * that mean something for such a process; the environment and the config file may hold every setting, as for `serve`.
 */
import type { Command } from 'commander'
import type { JoinedWorker } from '../../compose/joined-worker.ts'
import { loadConfig } from '../../config/config.ts'
import { OTHER_ENV } from '../../config/env.ts'
import { isMeantForJoined, type JoinConfig, type JoinFlags, readJoin } from '../../config/join-config.ts'
import { isInGroup, SETTING_NAMES, type SettingGroup, type SettingName } from '../../config/settings/settings.ts'
import { addSettingFlags, printWarnings } from '../setting-flags.ts'
import { CommandError, EXIT, type Finish, printLine, readVersion, type Terminal } from '../terminal.ts'
import { openLog } from './open-log.ts'
import { explainStart, listenForStop, serve } from './serve.ts'

const GROUPS: readonly SettingGroup[] = ['Storage', 'Jobs', 'Engine', 'Fleet', 'Router', 'Webhooks', 'Logs']
const OTHERS: readonly SettingName[] = ['kind', 'host', 'port', 'allowInsecureBind', 'tiers', 'publicUrl']
/** About answering clients, whatever their group. */
const NOT_HERE: readonly SettingName[] = ['maxQueue', 'drainDelay', 'content']

const EXAMPLES = `
A worker takes jobs from the database of a service and runs them on the engines beside it:

  ATELIER_DATABASE=postgres://… ATELIER_SECRET_KEY=… atelier work --comfyui http://127.0.0.1:8188

A machine that must reach neither the database nor the storage joins over HTTPS instead, with a key of its own (atelier workers
create), through outbound connections alone:

  ATELIER_WORKER_TOKEN=atl_… atelier work --join https://api.example.com --comfyui http://127.0.0.1:8188

With --builds on, and a key that was made with --builds, it also makes the environments of releases and serves deployments on them:

  ATELIER_WORKER_TOKEN=atl_… atelier work --join https://api.example.com --builds on --release-engines 1 --embedded off

A worker with the database listens for /healthz, /readyz and /metrics alone. SIGTERM lets runs finish within --drain-timeout; the rest goes back to the
queue. \`atelier nodes\` lists the workers of a service.`

export function addWork(program: Command, terminal: Terminal, finish: Finish): void {
  const command = program.command('work').description('run jobs for a service that other processes serve')
  addSettingFlags(command, SETTING_NAMES.filter(isOffered))
    .option(
      '--join <url>',
      'join a service over HTTPS instead of its database; several addresses of it, comma separated',
    )
    .option('--token-file <file>', `a file with the worker key, for --join (or env ${OTHER_ENV.workerToken})`)
    .option('--token <key>', 'the worker key itself; every user of this machine can see it, so prefer the two above')
    .option(
      '--builds <when>',
      'on: make the releases that the service says and serve them here, with --join (docs/builders.md)',
    )
    .option(
      '--allow-plain-http',
      'join an address without TLS that is not of this machine, on a network that you trust',
    )
    .option(
      '--health <address>',
      'where a joined worker answers /healthz, /readyz and /metrics: a port, or host and port; default: nowhere',
    )
    .addHelpText('after', EXAMPLES)
    .action(async (options: Record<string, unknown>) => {
      const { join, token, tokenFile, allowPlainHttp, health, builds = 'off', ...settings } = options
      if (builds !== 'on' && builds !== 'off') throw new CommandError('--builds must be on or off', EXIT.usage)
      if (typeof join !== 'string' && builds === 'on')
        throw new CommandError(
          '--builds is for --join; a worker with the database builds by its setting builder',
          EXIT.usage,
        )
      if (typeof join !== 'string') return finish(await serve({ ...settings, role: 'worker' }, terminal))
      const flags = { join, token, tokenFile, allowPlainHttp, health } as JoinFlags
      finish(await workJoined(flags, { settings, builds: builds === 'on' }, terminal))
    })
}

function isOffered(name: SettingName): boolean {
  if (NOT_HERE.includes(name)) return false
  return OTHERS.includes(name) || isInGroup(name, GROUPS)
}

async function workJoined(
  flags: JoinFlags,
  { settings, builds }: { readonly settings: Readonly<Record<string, unknown>>; readonly builds: boolean },
  terminal: Terminal,
): Promise<number> {
  const { join, key } = readJoin(flags, terminal.env)
  const load = (given: Readonly<Record<string, unknown>>) =>
    loadConfig({ ...{ flags: given, env: terminal.env, cwd: terminal.cwd }, isMeant: isMeantForJoined })
  // Without an engine of its own it is complete only with a builder.
  const isNamed = !builds || load({ ...settings, embedded: 'auto' }).config.builder !== null
  const loaded = load(isNamed ? settings : { ...settings, builder: 'on' })
  printWarnings(loaded, terminal)
  const { config, secrets } = loaded
  await using logs = openLog(config.log, { descriptor: terminal.stderr.fd, isTerminal: terminal.stderr.isTTY })
  const { log } = logs
  const stop = listenForStop(terminal)
  const stopped = new AbortController()
  void stop.requested.then(() => stopped.abort())
  let joined: JoinedWorker | null = null
  try {
    const { startJoinedWorker } = await import('../../compose/joined-worker.ts')
    await using health = await openHealth(join, {
      isReady: () => joined?.isReady() === true,
      metrics: () => joined?.metrics ?? null,
    })
    const { pools } = config.jobs
    const { traceHeaders } = secrets
    const common = { key, traceHeaders, log, version: readVersion(), signal: stopped.signal }
    const options = { ...common, ...(pools !== null && { pools }), ...(builds && { builds: { secrets } }) }
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
        ...(builds ? [`  releases      up to ${config.fleet.copies.room} engines`] : []),
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
  const { openJoinedHealth } = await import('../../listeners/health.ts')
  return openJoinedHealth(health, sources).catch(explainStart)
}

/** Refusals of the service are shown as they are; anything else is a failure of the start. */
function explainJoin(error: unknown): never {
  if (error instanceof Error && error.name === 'ServiceError') {
    throw new CommandError(`cannot join: ${error.message}`, EXIT.usage)
  }
  return explainStart(error)
}

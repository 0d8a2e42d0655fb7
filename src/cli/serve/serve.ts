/**
 * `atelier serve`: starts the service, prints its address, and shuts it down. The first SIGTERM or Ctrl-C drains (no new work,
 * running jobs finish or go back to the queue), a second one ends the process at once. A signal during the start ends it within
 * seconds.
 */
import type { Command } from 'commander'
import type { Log } from '../../../lib/log.ts'
import { settlesWithin } from '../../../lib/waiting/sleep.ts'
import type { App } from '../../app.ts'
import type { Config } from '../../config/config.ts'
import { addSettingFlags, loadFromCommandLine, printWarnings } from '../setting-flags.ts'
import {
  CommandError,
  EXIT,
  exitOfStore,
  type Finish,
  printLine,
  readVersion,
  type Terminal,
  toPrintable,
} from '../terminal.ts'
import { openLog } from './open-log.ts'

const END_START_WITHIN_MS = 2000

const EXAMPLES = `
Examples:
  atelier serve                                     on this machine, with the built-in engine
  atelier serve --comfyui http://127.0.0.1:8188     in front of a ComfyUI server; repeat it for more
  ATELIER_TOKEN=… atelier serve --host 0.0.0.0      for other machines, with one token
  ATELIER_ADMIN_TOKEN=… atelier serve --kind cloud  for many accounts, with keys and limits
  atelier serve --config atelier.config.json        with everything in a file`

export function addServe(program: Command, terminal: Terminal, finish: Finish): void {
  const command = program.command('serve').description('start the service')
  addSettingFlags(command.addHelpText('after', EXAMPLES)).action(async (options: Record<string, unknown>) => {
    finish(await serve(options, terminal))
  })
}

/** Runs a process of the service until it is told to stop. `options` are flags as commander gives them. */
export async function serve(options: Readonly<Record<string, unknown>>, terminal: Terminal): Promise<number> {
  const loaded = loadFromCommandLine(options, terminal)
  printWarnings(loaded, terminal)
  const { config, secrets } = loaded
  await using service = openLog(config.log, { descriptor: terminal.stderr.fd, isTerminal: terminal.stderr.isTTY })
  const { log } = service
  const stop = listenForStop(terminal)
  try {
    // Loaded only here, so that other commands start faster and the doctor works where a native module does not load.
    const { beginStore } = await import('../../compose/storage/open-store.ts')
    const begun = beginStore(config, secrets, log)
    const { startApp } = await import('../../app.ts')
    const starting = startApp(config, secrets, { log, version: readVersion(), ...begun })
    if (await isStoppedEarly(starting, stop.requested)) {
      log.info({}, 'stopped before the start was complete')
      const ended = starting.then((app) => app[Symbol.asyncDispose]())
      // Safe whatever the start still waits for: no work has been accepted, and the data folder survives a sudden end.
      if (!(await settlesWithin(ended, END_START_WITHIN_MS))) terminal.exitNow(EXIT.ok)
      return EXIT.ok
    }
    await using app = await starting.catch(explainStart)
    using _hangup = listenForReload(app, { terminal, log })
    printLine(terminal.stdout, toBanner(app, config, secrets.token !== null))
    const end = await Promise.race([stop.requested, app.failed])
    if (end instanceof Error) {
      log.error({ err: end }, 'the service failed')
      throw new CommandError(`the service stopped: ${end.message}`, EXIT.failed)
    }
    log.info({ signal: end }, 'draining: no new work, running jobs finish or go back to the queue')
    await app.drain()
    log.info({}, 'drained')
    return EXIT.ok
  } finally {
    stop.end()
  }
}

/** Whether the stop came before the start was complete. A failed start is handled by its own catch. */
function isStoppedEarly(starting: Promise<App>, requested: Promise<string>): Promise<boolean> {
  const started = starting.then(
    () => false,
    () => false,
  )
  return Promise.race([started, requested.then(() => true)])
}

/** SIGHUP reads the model catalogue again. A faulty one is logged, and the present one stays. */
function listenForReload(app: App, { terminal, log }: { terminal: Terminal; log: Log }): Disposable {
  const end = terminal.onHangup(() => {
    app
      .reloadModels()
      .catch((error: unknown) => log.error({ err: error }, 'the model catalogue could not be read again'))
  })
  return { [Symbol.dispose]: end }
}

export function listenForStop(terminal: Terminal): { readonly requested: Promise<string>; end(): void } {
  const { promise, resolve } = Promise.withResolvers<string>()
  let isSecond = false
  const end = terminal.onSignal((signal) => {
    if (isSecond) terminal.exitNow(EXIT.failed)
    isSecond = true
    resolve(signal)
  })
  return { requested: promise, end }
}

const HINTS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the port is taken: stop what listens there, or choose another with --port (0 takes any free one)',
  EADDRNOTAVAIL: 'this machine does not have that address: choose another with --host',
  EACCES: 'permission denied: choose a port above 1023, and a data folder that this user may write',
  EPERM: 'permission denied: choose a data folder that this user may write',
  EROFS: 'the data folder cannot be written: choose another with --data-dir',
  ENOSPC: 'the disk is full: free some space, or choose another data folder with --data-dir',
  ENOTDIR: 'the data folder is a file: choose another with --data-dir',
  EISDIR: 'a folder lies where a file of the data folder should be: move it away, or choose another with --data-dir',
  EEXIST: 'the data folder is a file: choose another with --data-dir',
}

// What a setting names cannot be used, so this is a configuration error.
const MISTAKES: readonly string[] = [
  'NodeModuleError',
  'CommandError',
  'CatalogError',
  'ProviderSettingsError',
  'FrontendError',
]

/** Turns failures that an operator can fix into one line; anything else is a defect and keeps its stack. */
export function explainStart(error: unknown): never {
  if (error instanceof Error) {
    const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
    const hint = Object.hasOwn(HINTS, code) ? HINTS[code] : null
    if (hint !== null) throw new CommandError(`cannot start: ${oneLine(error.message)}; ${hint}`, EXIT.failed)
    // The store's own errors (locked, newer schema, unusable) are already written for the operator.
    if (error.name === 'StoreOpenError')
      throw new CommandError(`cannot start: ${oneLine(error.message)}`, exitOfStore(error))
    if (MISTAKES.includes(error.name)) throw new CommandError(`cannot start: ${oneLine(error.message)}`, EXIT.usage)
  }
  throw error
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ')
}

/** An engine that is not ready has a line of its own, with the reason. */
function toEngineLine({ fleet }: App): string {
  const engines = fleet.status()
  const ready = engines.filter(({ state }) => state === 'ready').map(({ id }) => id)
  const others = engines
    .filter(({ state }) => state !== 'ready')
    .map(
      ({ id, state, reason, lastError }) => `${id} (${[state, reason ?? lastError?.message ?? []].flat().join('; ')})`,
    )
  return [...(ready.length === 0 ? [] : [ready.join(', ')]), ...others].map(toPrintable).join(BELOW)
}

const BELOW = `\n${' '.repeat('  engines       '.length)}`

const NO_CONSOLE = 'nothing: the console was not built (npm ci && npm run build:console, then start again)'

function toBanner(app: App, config: Config, needsToken: boolean): string {
  if (config.role === 'worker') return toWorkerBanner(app, config)
  // Where there are accounts, callers use the API keys of those (atelier keys create).
  const credential = config.kind === 'local' ? '$ATELIER_TOKEN' : '$KEY'
  const header = needsToken || config.kind !== 'local' ? ` -H "Authorization: Bearer ${credential}"` : ''
  const base = `${app.url}${config.http.mountPrefix}`
  return [
    `Atelier ${readVersion()} is serving at ${base}`,
    ...(config.store.kind === 'postgres' ? [`  database      ${config.store.shown}`] : []),
    `  data folder   ${config.dataDirectory}`,
    `  engines       ${config.role === 'api' ? 'those of other processes' : toEngineLine(app)}`,
    `  in a browser  ${app.hasConsole ? `${base}/` : NO_CONSOLE}`,
    ...(app.frontendUrl === null ? [] : [`  ComfyUI page  ${app.frontendUrl}/`]),
    `  API reference ${base}/docs`,
    `  try it        curl -s${header} ${base}/api/v2/jobs -d '{"workflow":{"1":{"class_type":"PrimitiveString","inputs":{"value":"hello"}},"2":{"class_type":"PreviewAny","inputs":{"source":["1",0]}}}}'`,
    '  stop          Ctrl-C',
  ].join('\n')
}

function toWorkerBanner(app: App, { store, jobs }: Config): string {
  return [
    `Atelier ${readVersion()} is working; its health is at ${app.url}/healthz`,
    ...(store.kind === 'postgres' ? [`  database      ${store.shown}`] : []),
    `  engines       ${toEngineLine(app)}`,
    `  pools         ${jobs.pools?.join(', ') ?? 'all'}`,
    '  stop          Ctrl-C',
  ].join('\n')
}

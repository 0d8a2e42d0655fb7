/**
 * One administrative command: it reaches the admin API, calls it and prints the answer. The API is that of the service at `--url`, or
 * of the service that holds the data folder; when no service holds it, the same API is opened over the folder in this process.
 */

import { userInfo } from 'node:os'
import type { Command } from 'commander'
import { silentLog } from '../../../lib/log.ts'
import { findService } from '../../compose/process/service-file.ts'
import type { LoadedConfig } from '../../config/config.ts'
import { ENV, OTHER_ENV } from '../../config/env.ts'
import { addSettingFlags, loadFromCommandLine } from '../setting-flags.ts'
import { CommandError, EXIT, type Finish, printLine, readVersion, type Terminal, toPrintable } from '../terminal.ts'

export type Options = Readonly<Record<string, unknown>>

export interface AdminCommand<Answer extends object> {
  readonly ask: (client: AdminClient, options: Options, args: readonly (string | undefined)[]) => Promise<Answer>
  /** What a person reads; with --json the answer itself is printed. */
  readonly show: (answer: Answer) => string
  /** The exit code; left out: success. */
  readonly judge?: (answer: Answer) => number
}

export interface CommandParts {
  readonly terminal: Terminal
  readonly finish: Finish
}

export function addAdminCommand<Answer extends object>(
  command: Command,
  admin: AdminCommand<Answer>,
  parts: CommandParts,
): void {
  const { terminal, finish } = parts
  addAdminFlags(command).action(async (...given: unknown[]) => {
    // Commander hands in the arguments, then the options, then the command.
    const options = given.at(-2) as Options
    const args = given.slice(0, -2) as (string | undefined)[]
    finish(await askAdmin(admin, { options, args, terminal }))
  })
}

interface Asked {
  readonly options: Options
  readonly args: readonly (string | undefined)[]
  readonly terminal: Terminal
}

/** Returns the exit code. */
export async function askAdmin<Answer extends object>(
  { ask, show, judge }: AdminCommand<Answer>,
  { options, args, terminal }: Asked,
): Promise<number> {
  const isJson = options['json'] === true
  await using client = connect(options, terminal)
  try {
    const answer = await ask(client, options, args)
    printLine(terminal.stdout, isJson ? JSON.stringify(answer, null, 2) : toPrintable(show(answer)))
    return judge?.(answer) ?? EXIT.ok
  } catch (error) {
    if (isJson && error instanceof AdminRefusal) printLine(terminal.stdout, JSON.stringify(error.answer, null, 2))
    throw error
  }
}

/** What the service refused, with its answer. */
class AdminRefusal extends CommandError {
  readonly answer: object

  constructor(message: string, exitCode: number, answer: object) {
    super(message, exitCode)
    this.answer = answer
  }
}

export interface AdminClient extends AsyncDisposable {
  /** Throws CommandError with the service's own message. */
  call<Answer extends object>(method: string, path: string, body?: object): Promise<Answer>
  /** What lies there as a table. Throws as above. */
  table(path: string): Promise<string>
}

const CALL_WITHIN_MS = 60_000

export function addAdminFlags(command: Command): Command {
  return addSettingFlags(command, ['dataDir', 'database', 'databasePasswordFile', 'tiers'])
    .option(
      '--url <url>',
      `the service to talk to (env ${OTHER_ENV.baseUrl}; default: the one that holds the data folder, or the folder itself)`,
    )
    .option('--admin-token <token>', `its admin token (env ${ENV.adminToken}; prefer the variable)`)
    .option('--json', 'print the answer as JSON')
}

/** Connects at the first call, so that a mistake in the arguments is reported before any service is looked for. */
function connect(options: Options, terminal: Terminal): AdminClient {
  let opened: Promise<AdminClient> | null = null
  return {
    async call<Answer extends object>(method: string, path: string, body?: object) {
      opened ??= findAdmin(options, terminal)
      return (await opened).call<Answer>(method, path, body)
    },
    async table(path) {
      opened ??= findAdmin(options, terminal)
      return (await opened).table(path)
    },
    async [Symbol.asyncDispose]() {
      // The call itself has already thrown this error.
      const client = await opened?.catch(() => null)
      await client?.[Symbol.asyncDispose]()
    },
  }
}

async function findAdmin(options: Options, terminal: Terminal): Promise<AdminClient> {
  const token = textOf(options, 'adminToken') ?? terminal.env[ENV.adminToken] ?? null
  const url = textOf(options, 'url') ?? terminal.env[OTHER_ENV.baseUrl] ?? null
  if (url !== null) return toRemote(readUrl(url), token)
  const loaded = loadFromCommandLine(settingsOf(options), terminal, { isForAccounts: true })
  const { dataDirectory: directory } = loaded.config
  const service = findService(loaded.config)
  if (service.state === 'none') return openStored(loaded)
  if (service.state === 'unusable')
    throw new CommandError(`cannot open the data folder: ${service.message}`, EXIT.failed)
  if (service.state === 'held')
    throw new CommandError(
      `the data folder ${directory} is in use, but has no address yet: a service is starting or stopping, or another command uses it; try again, or give --url`,
      EXIT.failed,
    )
  if (token !== null) return toRemote(service.address.url, token)
  throw new CommandError(
    `a service holds the data folder ${directory} and answers at ${service.address.url}; give its admin token with --admin-token or in ${ENV.adminToken}`,
    EXIT.usage,
  )
}

/** Leaves out the options of the command itself, some of which have the names of settings. */
function settingsOf({ config, dataDir, database, databasePasswordFile, tiers }: Options): Options {
  return { config, dataDir, database, databasePasswordFile, tiers }
}

async function openStored(loaded: LoadedConfig): Promise<AdminClient> {
  // Loaded only here: commands that talk to a running service start faster.
  const { openOfflineAdmin } = await import('../../listeners/offline-admin.ts')
  const place = loaded.config.store.kind === 'postgres' ? 'database' : 'data folder'
  const actor = `${userInfo().username} at the ${place}`
  const offline = await openOfflineAdmin(loaded, { actor, version: readVersion(), log: silentLog })
  return { ...toRemote(offline.url, offline.token), [Symbol.asyncDispose]: () => offline[Symbol.asyncDispose]() }
}

function toRemote(url: string, token: string | null): AdminClient {
  if (token === null) {
    throw new CommandError(
      `the admin token of ${url} is missing; give it with --admin-token or in ${ENV.adminToken}`,
      EXIT.usage,
    )
  }
  const ask = (method: string, path: string, accept: string, body?: object) =>
    fetch(`${url}/admin/v1${path}`, {
      method,
      // One call per connection, so that the API over a data folder can close at once.
      headers: { authorization: `Bearer ${token}`, connection: 'close', accept },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(CALL_WITHIN_MS),
    }).catch((error: unknown) => unreachable(url, error))
  return {
    async call<Answer extends object>(method: string, path: string, body?: object) {
      return (await readAnswer(await ask(method, path, 'application/json', body))) as Answer
    },
    async table(path) {
      const response = await ask('GET', path, 'text/csv')
      const isTable = response.ok && response.headers.get('content-type')?.startsWith('text/csv') === true
      if (isTable) return response.text()
      await readAnswer(response)
      throw new CommandError(`${url} answered with no table; is it an older version of the service?`, EXIT.failed)
    },
    async [Symbol.asyncDispose]() {},
  }
}

interface Refused {
  readonly error?: { readonly type?: unknown; readonly message?: unknown }
}

async function readAnswer(response: Response): Promise<object> {
  const answer = parse(await response.text())
  if (response.ok && answer !== null) return answer
  const { type, message } = (answer as Refused | null)?.error ?? {}
  const words = typeof message === 'string' ? message : `the service answered ${response.status}`
  // Every error of the admin API has a type; without one, something else has answered.
  const hint = type === undefined ? '; is it served with an adminToken?' : ''
  // A refused value is a mistake in the call, also when the service is what notices it.
  const isMistake = type === 'invalid_field' || type === 'invalid_request'
  const none = { error: { type: `http_${response.status}`, message: words } }
  throw new AdminRefusal(toPrintable(words) + hint, isMistake ? EXIT.usage : EXIT.failed, answer ?? none)
}

function parse(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' ? value : null
  } catch {
    return null
  }
}

function unreachable(url: string, error: unknown): never {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error)
  throw new CommandError(`${url} cannot be reached: ${cause}`, EXIT.unreachable)
}

function readUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url !== null && /^https?:$/.test(url.protocol)) return text.replace(/\/+$/, '')
  throw new CommandError(`--url ${JSON.stringify(text)} is not an http(s) address`, EXIT.usage)
}

export function textOf(options: Options, name: string): string | null {
  return typeof options[name] === 'string' ? options[name] : null
}

export function toPairs(pairs: readonly (readonly [name: string, value: unknown])[]): string {
  const width = Math.max(...pairs.map(([name]) => name.length))
  return pairs.map(([name, value]) => `${name.padEnd(width)}  ${toText(value)}`).join('\n')
}

/** Columns as wide as their widest cell; `empty` when there are no rows. */
export function toTable(
  headings: readonly string[],
  rows: readonly (readonly unknown[])[],
  { empty }: { readonly empty: string },
): string {
  if (rows.length === 0) return empty
  const cells = [headings, ...rows.map((row) => row.map(toText))]
  const widths = headings.map((_, column) => Math.max(...cells.map((row) => row[column].length)))
  return cells
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column]))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

function toText(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-'
  return Array.isArray(value) ? value.join(', ') || '-' : String(value)
}

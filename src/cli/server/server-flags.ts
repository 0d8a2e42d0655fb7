/** The flags that name a server of the Jobs API, or say that there is none. */
import type { Command } from 'commander'
import { stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import { findService } from '../../compose/process/service-file.ts'
import { ENV, OTHER_ENV } from '../../config/env.ts'
import { loadFromCommandLine } from '../setting-flags.ts'
import { CommandError, EXIT, printLine, type Terminal } from '../terminal.ts'
import { type ClientOptions, RefusedError, RunClient, readBaseUrl, UnreachableError } from './client.ts'

const DEFAULT_BASE_URL = 'http://127.0.0.1:8189'
const SERVER_FLAGS = { baseUrl: '--base-url', dataDir: '--data-dir', token: '--token' }

type Options = Readonly<Record<string, unknown>>

export function addServerFlags(command: Command): Command {
  return command
    .option('--base-url <url>', `the server (env ${OTHER_ENV.baseUrl}; default ${DEFAULT_BASE_URL})`)
    .option('--data-dir <folder>', 'instead: the server that holds this data folder')
    .option('--token <token>', `the bearer token (env ${ENV.token})`)
}

/** null: `--local`. */
export function readServer(options: Options, terminal: Terminal): ClientOptions | null {
  return options['local'] === true ? refuseServer(options) : toServer(options, terminal)
}

function refuseServer(options: Options): null {
  for (const [name, flag] of Object.entries(SERVER_FLAGS)) {
    if (options[name] !== undefined) {
      throw new CommandError(`${flag} names a server, and --local runs without one: leave one of them out`, EXIT.usage)
    }
  }
  return null
}

function toServer(options: Options, terminal: Terminal): ClientOptions {
  const text = (name: string) => (typeof options[name] === 'string' ? options[name] : null)
  const { env } = terminal
  const named = text('baseUrl') ?? findByFolder(text('dataDir'), terminal) ?? env[OTHER_ENV.baseUrl]
  return { baseUrl: readBaseUrl(named ?? DEFAULT_BASE_URL), token: text('token') ?? env[ENV.token] ?? null }
}

function findByFolder(dataDir: string | null, terminal: Terminal): string | null {
  if (dataDir === null) return null
  const { config } = loadFromCommandLine({ dataDir }, terminal)
  const service = findService(config)
  if (service.state === 'running') return service.address.baseUrl
  const reason = service.state === 'unusable' ? service.message : `no service answers for ${config.dataDirectory}`
  throw new CommandError(`${reason}; start one with: atelier serve --data-dir ${dataDir}`, EXIT.unreachable)
}

export async function askServer(
  options: Readonly<Record<string, unknown>>,
  terminal: Terminal,
  ask: (client: RunClient) => Promise<number>,
): Promise<number> {
  const server = readServer(options, terminal)
  if (server === null) throw new CommandError('this needs a server; name one with --base-url', EXIT.usage)
  try {
    return await ask(new RunClient(server))
  } catch (error) {
    return explainServer(error, { json: options['json'] === true, terminal })
  }
}

interface Explaining {
  readonly json: boolean
  readonly terminal: Terminal
}

/** Says what a server refused, with `--json` also as it said it; the answer is the exit code. Everything else is thrown. */
export function explainServer(error: unknown, { json, terminal }: Explaining): number {
  if (error instanceof UnreachableError)
    throw new CommandError(`${error.message}; is the server running? (--base-url, \`atelier serve\`)`, EXIT.unreachable)
  if (!(error instanceof RefusedError)) throw error
  for (const line of error.lines) printLine(terminal.stderr, line)
  if (json) printLine(terminal.stdout, stringifyLosslessJson(error.answer))
  return EXIT.failed
}

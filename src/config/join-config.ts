/**
 * How a worker joins a service: where, and with which key. The key stands in a file or in the environment; on the command line
 * every user of the machine could read it. Plain HTTP would show it to the network, so only loopback may be joined that way.
 */
import { readFileSync } from 'node:fs'
import { ConfigError, quote } from './config-error.ts'
import { OTHER_ENV } from './env.ts'
import { isLoopback } from './readers/read-network.ts'
import { Secret } from './secrets.ts'
import type { Environment } from './settings/setting.ts'
import { isInGroup, type SettingName } from './settings/settings.ts'

export interface JoinConfig {
  /** Of nodes of one service, without a slash at the end. */
  readonly urls: readonly string[]
  /** Where its health can be asked for; null or left out: nowhere. */
  readonly health?: { readonly host: string; readonly port: number } | null
}

export interface JoinFlags {
  /** Addresses, comma separated. */
  readonly join: string
  readonly token?: string
  readonly tokenFile?: string
  readonly allowPlainHttp?: boolean
  /** A port, or host and port. */
  readonly health?: string
}

/** Throws ConfigError with one line. */
export function readJoin(
  flags: JoinFlags,
  env: Environment,
): { readonly join: JoinConfig; readonly key: Secret<string> } {
  const urls = flags.join.split(',').map((text) => readUrl(text.trim(), flags.allowPlainHttp === true))
  const health = flags.health === undefined ? null : readHealth(flags.health)
  return { join: { urls, health }, key: new Secret(readKey(flags, env)) }
}

/** A joined worker runs jobs on engines. It has neither a store nor callers, so settings about those must not keep it from starting. */
export function isMeantForJoined(name: SettingName): boolean {
  return isInGroup(name, ['Jobs', 'Engine', 'Fleet', 'Logs', 'Traces'])
}

const ADDRESS = /^(?:(\[[0-9a-f:.]+\]|[^:]+):)?(\d{1,5})$/i
const MAX_PORT = 65_535

function readHealth(text: string): { readonly host: string; readonly port: number } {
  const [, host = '127.0.0.1', port = ''] = ADDRESS.exec(text) ?? []
  if (port === '' || Number(port) > MAX_PORT) {
    throw new ConfigError(`--health ${quote(text)} must be a port, or an address such as 0.0.0.0:8190`)
  }
  return { host: host.replace(/^\[(.*)\]$/, '$1'), port: Number(port) }
}

function readUrl(text: string, allowsPlain: boolean): string {
  const url = URL.parse(text)
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    throw new ConfigError(`--join ${quote(text)} must be an address such as https://api.example.com`)
  }
  if (url.username !== '' || url.search !== '' || url.hash !== '') {
    throw new ConfigError('--join must be an address without credentials, query or fragment')
  }
  if (url.protocol === 'http:' && !allowsPlain && !isLoopback(url.hostname.replace(/^\[(.*)\]$/, '$1'))) {
    throw new ConfigError(
      `--join ${quote(text)} would send the key in the clear: use https, or --allow-plain-http on a network that you trust`,
    )
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
}

function readKey({ token, tokenFile }: JoinFlags, env: Environment): string {
  const text = tokenFile === undefined ? (token ?? env[OTHER_ENV.workerToken]) : readFile(tokenFile)
  const key = text?.trim() ?? ''
  if (key === '') {
    throw new ConfigError(
      `a worker key is missing: set ${OTHER_ENV.workerToken}, or give --token-file; it is made with: atelier workers create`,
    )
  }
  // Never repeated: a mistyped key is nearly the right one.
  if (!/^atl_[0-9A-Za-z]{12}_[0-9A-Za-z]{38}$/.test(key))
    throw new ConfigError('the worker key is not complete: it begins with atl_')
  return key
}

function readFile(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new ConfigError(`--token-file ${quote(path)} cannot be read (${(error as NodeJS.ErrnoException).code ?? ''})`)
  }
}

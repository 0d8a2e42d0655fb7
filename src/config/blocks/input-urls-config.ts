/** From where files of callers are fetched, and what is sent along to hosts that want to know who asks. */
import { ConfigError } from '../config-error.ts'
import { loadBlock } from '../readers/read-choice.ts'
import { type InputUrls, readInputHosts } from '../readers/read-network.ts'
import { Secret } from '../secrets.ts'
import type { ToAbsolute } from '../settings/setting-sources.ts'
import type { SettingValues } from '../settings/settings.ts'

const OFF: InputUrls = { isPublic: false, hosts: [], origins: [], isForJobs: false }

export function toInputUrlsConfig({ inputUrls, kind }: SettingValues, toAbsolute: ToAbsolute): InputUrls {
  if (inputUrls === null) return kind === 'local' ? OFF : { ...OFF, isPublic: true }
  if (inputUrls.kind === 'list') return inputUrls.from
  const { from = 'public' } = readObject(inputUrls, toAbsolute)
  const isList = Array.isArray(from) && from.every((item) => typeof item === 'string' && !item.includes(','))
  if (typeof from !== 'string' && !isList)
    throw new ConfigError('"from" of inputUrls must be a text or a list of texts')
  try {
    return readInputHosts(typeof from === 'string' ? from : from.join(','))
  } catch (error) {
    throw new ConfigError(`"from" of inputUrls ${(error as Error).message}`)
  }
}

/** By the name of a host, the headers that requests to it carry, as JSON; null: none. */
export function toInputHeaders({ inputUrls }: SettingValues, toAbsolute: ToAbsolute): Secret<string> | null {
  if (inputUrls === null || inputUrls.kind === 'list') return null
  const { headers = {} } = readObject(inputUrls, toAbsolute)
  if (!areHostHeaders(headers)) {
    throw new ConfigError('"headers" of inputUrls must hold, for each host, an object with the headers that it is sent')
  }
  return new Secret(JSON.stringify(headers))
}

interface Given {
  readonly from?: unknown
  readonly headers?: unknown
}

function readObject(
  block: Exclude<SettingValues['inputUrls'], null | { kind: 'list' }>,
  toAbsolute: ToAbsolute,
): Given {
  const value = loadBlock('inputUrls', block, toAbsolute) ?? {}
  const unknown = Object.keys(value).find((name) => name !== 'from' && name !== 'headers')
  if (unknown !== undefined)
    throw new ConfigError(`inputUrls has the unknown member "${unknown}"; use from and headers`)
  return value
}

const HOST = /^[a-z0-9.-]{1,253}$/
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9a-z-]{1,128}$/i
const HEADER_VALUE = /^[\x20-\x7e]{1,8192}$/

/** By the name of a host, headers by their names. */
export function areHostHeaders(value: unknown): boolean {
  return (
    isObject(value) &&
    Object.entries(value).every(([host, headers]) => HOST.test(host) && isObject(headers) && areHeaders(headers))
  )
}

function areHeaders(headers: object): boolean {
  return Object.entries(headers).every(
    ([name, value]) => HEADER_NAME.test(name) && typeof value === 'string' && HEADER_VALUE.test(value),
  )
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

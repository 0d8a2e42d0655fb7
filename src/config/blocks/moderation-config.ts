/** The hooks that are asked before runs begin and before outputs are handed out, and the secrets that sign what they are sent. */
import { readSecretText } from '../../../lib/standard-webhooks.ts'
import { ConfigError } from '../config-error.ts'
import { loadBlock } from '../readers/read-choice.ts'
import { isLoopback } from '../readers/read-network.ts'
import { readDurationMs } from '../readers/read-quantity.ts'
import { Secret } from '../secrets.ts'
import type { ToAbsolute } from '../settings/setting-sources.ts'
import type { SettingValues } from '../settings/settings.ts'

export interface HookConfig {
  readonly url: string
  readonly deadlineMs: number
  readonly onFailure: 'refuse' | 'allow'
  readonly atOnce: number
}

export interface ModerationConfig {
  /** Also of graphs that are submitted as such, and not only of calls of endpoints. */
  readonly coversJobs: boolean
  /** Where hooks reach this service; null: at its public address, or where it listens. */
  readonly serviceUrl: string | null
  /** null: nobody is asked. */
  readonly beforeRun: HookConfig | null
  readonly beforeOutputs: HookConfig | null
}

/** By hook, one or two secrets: while one replaces another, both sign. */
export interface ModerationSecrets {
  readonly before_run: readonly string[]
  readonly before_outputs: readonly string[]
}

const OFF: ModerationConfig = { coversJobs: false, serviceUrl: null, beforeRun: null, beforeOutputs: null }
const MEMBERS = ['scope', 'service_url', 'http_origins', 'before_run', 'before_outputs']
const HOOK_MEMBERS = ['url', 'secret', 'deadline', 'on_failure', 'at_once']
const MAX_DEADLINE_MS = 60_000
const MAX_AT_ONCE = 1024
const DEFAULT_AT_ONCE = 32
const URL_MAX_LENGTH = 2048

type Given = Readonly<Record<string, unknown>>

export function toModerationConfig({ moderation, role }: SettingValues, toAbsolute: ToAbsolute): ModerationConfig {
  const given = readGiven(moderation, toAbsolute)
  if (given === null) return OFF
  const { scope = 'endpoints', http_origins: origins = [] } = given
  if (scope !== 'endpoints' && scope !== 'all') throw wrong('scope', 'must be endpoints or all')
  if (!isTexts(origins)) throw wrong('http_origins', 'must be a list of origins such as http://moderator:8000')
  const serviceUrl = given['service_url'] === undefined ? null : readServiceUrl(given['service_url'])
  const config = {
    coversJobs: scope === 'all',
    serviceUrl,
    beforeRun: readHook('before_run', given, { origins, deadlineMs: 5000 }),
    beforeOutputs: readHook('before_outputs', given, { origins, deadlineMs: 30_000 }),
  }
  if (config.beforeRun === null && config.beforeOutputs === null)
    throw new ConfigError('moderation names no hook; give it before_run, before_outputs or both, or leave it out')
  if (role === 'worker' && serviceUrl === null)
    throw wrong('service_url', 'is missing: a worker listens nowhere, so say where hooks read its outputs')
  return config
}

export function toModerationSecrets({ moderation }: SettingValues, toAbsolute: ToAbsolute): Secret<string> | null {
  const given = readGiven(moderation, toAbsolute)
  if (given === null) return null
  const secrets: ModerationSecrets = {
    before_run: readSecrets('before_run', given),
    before_outputs: readSecrets('before_outputs', given),
  }
  return new Secret(JSON.stringify(secrets))
}

function readGiven(block: SettingValues['moderation'], toAbsolute: ToAbsolute): Given | null {
  const given = loadBlock('moderation', block, toAbsolute) as Given | null
  if (given !== null) refuseUnknown('', given, MEMBERS)
  return given
}

function readHook(
  name: 'before_run' | 'before_outputs',
  given: Given,
  { origins, deadlineMs }: { readonly origins: readonly string[]; readonly deadlineMs: number },
): HookConfig | null {
  const hook = given[name]
  if (hook === undefined) return null
  if (!isObject(hook)) throw wrong(name, 'must be an object with url and secret')
  refuseUnknown(`${name}.`, hook, HOOK_MEMBERS)
  const { deadline, on_failure: onFailure = 'refuse', at_once: atOnce = DEFAULT_AT_ONCE } = hook
  if (onFailure !== 'refuse' && onFailure !== 'allow') throw wrong(`${name}.on_failure`, 'must be refuse or allow')
  if (typeof atOnce !== 'number' || !Number.isInteger(atOnce) || atOnce < 1 || atOnce > MAX_AT_ONCE)
    throw wrong(`${name}.at_once`, `must be an integer from 1 to ${MAX_AT_ONCE}`)
  return {
    url: readHookUrl(`${name}.url`, hook['url'], origins),
    deadlineMs: deadline === undefined ? deadlineMs : readDeadline(`${name}.deadline`, deadline),
    onFailure,
    atOnce,
  }
}

function readDeadline(member: string, value: unknown): number {
  try {
    return readDurationMs({ min: 100, max: MAX_DEADLINE_MS })(String(value))
  } catch (error) {
    throw wrong(member, (error as Error).message)
  }
}

function readHookUrl(member: string, value: unknown, origins: readonly string[]): string {
  const url = typeof value === 'string' && value.length <= URL_MAX_LENGTH ? URL.parse(value) : null
  if (url === null || url.username !== '' || url.password !== '')
    throw wrong(member, 'must be an address without a user name, such as https://moderator.example.com/before-run')
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const isOpen = url.protocol === 'http:' && (isLoopback(host) || origins.includes(url.origin))
  if (url.protocol === 'https:' || isOpen) return url.href
  throw wrong(member, 'must begin with https://, or its origin must stand in http_origins')
}

function readServiceUrl(value: unknown): string {
  const url = typeof value === 'string' ? URL.parse(value) : null
  const isPlain = url !== null && /^https?:$/.test(url.protocol) && url.search === '' && url.hash === ''
  if (isPlain) return url.href.replace(/\/+$/, '')
  throw wrong('service_url', 'must be an address such as http://10.0.0.5:8189')
}

function readSecrets(name: 'before_run' | 'before_outputs', given: Given): readonly string[] {
  const hook = given[name]
  if (!isObject(hook)) return []
  const secrets = Array.isArray(hook['secret']) ? hook['secret'] : [hook['secret']]
  const areGood = isTexts(secrets) && secrets.every((text) => readSecretText(text) !== null)
  if (areGood && (secrets.length === 1 || secrets.length === 2)) return secrets
  throw wrong(
    `${name}.secret`,
    'must be whsec_ and 24 to 64 bytes in base64, or two of these; make one with: openssl rand -base64 32',
  )
}

function refuseUnknown(prefix: string, object: Given, members: readonly string[]): void {
  const unknown = Object.keys(object).find((name) => !members.includes(name))
  if (unknown !== undefined)
    throw new ConfigError(`moderation has the unknown member "${prefix}${unknown}"; it knows ${members.join(', ')}`)
}

/** Never with the value: a secret may have been put in the wrong place. */
function wrong(member: string, problem: string): ConfigError {
  return new ConfigError(`"${member}" of moderation ${problem}`)
}

function isObject(value: unknown): value is Given {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}

/**
 * Where traces go, out of the setting `otlpEndpoint` and the standard variables of OpenTelemetry. An empty variable counts as one
 * that is not set, as OpenTelemetry says.
 */
import { ConfigError, quote } from '../config-error.ts'
import { OTEL_ENV } from '../env.ts'
import { readChoice, readSwitch } from '../readers/read-choice.ts'
import { readOtlpUrl } from '../readers/read-network.ts'
import { readCount } from '../readers/read-quantity.ts'
import { Secret } from '../secrets.ts'
import type { Environment } from '../settings/setting.ts'
import type { SettingValues } from '../settings/settings.ts'

const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const

export interface TracesConfig {
  /** Where spans are posted. */
  readonly url: string
  readonly timeoutMs: number
  readonly serviceName: string
  readonly resource: Readonly<Record<string, string>>
  readonly sampler: (typeof SAMPLERS)[number]
  readonly ratio: number
}

function readFrom(env: Environment) {
  return function read<Value>(name: keyof typeof OTEL_ENV, reader: (text: string) => Value, unset: string): Value {
    const text = env[OTEL_ENV[name]] || unset
    try {
      return reader(text)
    } catch (error) {
      const shown = name === 'headers' ? '' : ` = ${quote(text)}`
      throw new ConfigError(`${OTEL_ENV[name]}${shown} ${(error as Error).message}`)
    }
  }
}

/** null: off. */
export function toTracesConfig({ otlpEndpoint }: SettingValues, env: Environment): TracesConfig | null {
  const read = readFrom(env)
  const base = otlpEndpoint === null ? null : `${otlpEndpoint.replace(/\/+$/, '')}/v1/traces`
  const url = read('tracesEndpoint', readOtlpUrl, '') ?? base
  // Read only to refuse gRPC, which is not supported: a collector takes both of these at the same address.
  read('protocol', readChoice(['http/json', 'http/protobuf']), 'http/protobuf')
  const config = {
    timeoutMs: read('timeout', readCount({ min: 1, max: 60_000, example: 10_000 }), '10000'),
    serviceName: read('serviceName', readServiceName, 'atelier'),
    resource: read('resource', readResource, ''),
    sampler: read('sampler', readChoice(SAMPLERS), 'parentbased_always_on'),
    ratio: read('samplerArg', readRatio, '1'),
  }
  return url === null || read('isDisabled', readSwitch, 'false') ? null : { url, ...config }
}

export function toTraceHeaders(env: Environment): Secret<string> | null {
  return readFrom(env)('headers', readOtlpHeaders, '')
}

const MAX_PAIRS = 64
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/
const HEADER_VALUE = /^[\x20-\x7e]{0,4096}$/

/** JSON of an object; null: none. */
function readOtlpHeaders(text: string): Secret<string> | null {
  const pairs = readPairs(text)
  if (pairs.some(([name, value]) => !HEADER_NAME.test(name) || !HEADER_VALUE.test(value)))
    throw new Error('has a name or a value that no header can have; give name=value,name=value')
  const headers = pairs.map(([name, value]) => [name.toLowerCase(), value])
  return pairs.length === 0 ? null : new Secret(JSON.stringify(Object.fromEntries(headers)))
}

const MAX_ATTRIBUTE_LENGTH = 255

function readResource(text: string): Readonly<Record<string, string>> {
  const pairs = readPairs(text)
  if (pairs.some((pair) => pair.some((part) => part.length > MAX_ATTRIBUTE_LENGTH)))
    throw new Error(`has a key or a value of more than ${MAX_ATTRIBUTE_LENGTH} characters; shorten it`)
  return Object.fromEntries(pairs)
}

function readServiceName(text: string): string {
  if (/^[^\p{Cc}]{1,255}$/u.test(text)) return text
  throw new Error('is not a name of at most 255 characters; give for example atelier')
}

function readPairs(text: string): readonly (readonly [string, string])[] {
  const items = text.split(',').filter((item) => item.trim() !== '')
  if (items.length > MAX_PAIRS) throw new Error(`has more than ${MAX_PAIRS} pairs`)
  return items.map((item) => {
    const at = item.indexOf('=')
    if (at < 1) throw new Error('is not a list of pairs; give key=value,key=value')
    return [item.slice(0, at).trim(), decode(item.slice(at + 1).trim())]
  })
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new Error('has a value with a broken % in it; write a percent sign as %25')
  }
}

function readRatio(text: string): number {
  const ratio = Number(text)
  if (/^\d{1,3}(\.\d{1,12})?$/.test(text) && ratio <= 1) return ratio
  throw new Error('is not a number from 0 to 1; give for example 0.1')
}

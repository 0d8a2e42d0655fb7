/**
 * Where traces go, out of the setting `otlpEndpoint` and the standard variables of OpenTelemetry. An empty variable counts as one
 * that is not set, as OpenTelemetry says.
 */
import { ConfigError, quote } from '../config-error.ts'
import { OTEL_ENV } from '../env.ts'
import { readChoice, readSwitch } from '../readers/read-choice.ts'
import { readCount } from '../readers/read-quantity.ts'
import { readOtlpHeaders, readOtlpUrl, readRatio, readResource, readServiceName } from '../readers/read-traces.ts'
import type { Secret } from '../secrets.ts'
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

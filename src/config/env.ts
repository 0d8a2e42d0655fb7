/** The names of all environment variables that Atelier reads, besides those of libpq (readers/read-storage.ts). */

import { RETIRED } from './settings/retired.ts'
import type { Environment } from './settings/setting.ts'
import { SETTING_NAMES, type SettingName, toVariable } from './settings/settings.ts'

/** The standard variables of OpenTelemetry: one set of them serves every program of a host. */
export const OTEL_ENV = {
  endpoint: 'OTEL_EXPORTER_OTLP_ENDPOINT',
  tracesEndpoint: 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
  headers: 'OTEL_EXPORTER_OTLP_HEADERS',
  protocol: 'OTEL_EXPORTER_OTLP_PROTOCOL',
  timeout: 'OTEL_EXPORTER_OTLP_TIMEOUT',
  serviceName: 'OTEL_SERVICE_NAME',
  resource: 'OTEL_RESOURCE_ATTRIBUTES',
  sampler: 'OTEL_TRACES_SAMPLER',
  samplerArg: 'OTEL_TRACES_SAMPLER_ARG',
  isDisabled: 'OTEL_SDK_DISABLED',
} as const

/** The variable of each setting. */
export const ENV = {
  ...(Object.fromEntries(SETTING_NAMES.map((name) => [name, toVariable(name)])) as Record<SettingName, string>),
  otlpEndpoint: OTEL_ENV.endpoint,
}

/** Variables that are not settings of the service: where the config file lies, and what `atelier run` talks to. */
export const OTHER_ENV = {
  configFile: 'ATELIER_CONFIG',
  baseUrl: 'ATELIER_BASE_URL',
  workerToken: 'ATELIER_WORKER_TOKEN',
} as const

const KNOWN: ReadonlySet<string> = new Set([
  ...Object.values(ENV),
  ...Object.values(OTHER_ENV),
  ...Object.keys(RETIRED).map(toVariable),
])

/** Names with our prefix that are no setting: most likely typing mistakes. */
export function findUnknownNames(env: Environment): string[] {
  return Object.keys(env).filter((name) => name.startsWith('ATELIER_') && !KNOWN.has(name))
}

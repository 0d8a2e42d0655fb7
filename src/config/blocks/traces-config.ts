/** Where traces go; there is nothing of it where they are off. */
import type { SettingValues } from '../settings/settings.ts'

export interface TracesConfig {
  /** Where spans are posted. */
  readonly url: string
  readonly timeoutMs: number
  readonly serviceName: string
  readonly resource: Readonly<Record<string, string>>
  readonly sampler: SettingValues['otelTracesSampler']
  readonly ratio: number
}

/** null: off. */
export function toTracesConfig(values: SettingValues): TracesConfig | null {
  const { otlpEndpoint, otlpTracesEndpoint, otelSdkDisabled } = values
  const url = otlpTracesEndpoint ?? (otlpEndpoint === null ? null : `${otlpEndpoint.replace(/\/+$/, '')}/v1/traces`)
  if (url === null || otelSdkDisabled) return null
  return {
    url,
    timeoutMs: values.otlpTimeout,
    serviceName: values.otelServiceName,
    resource: values.otelResourceAttributes,
    sampler: values.otelTracesSampler,
    ratio: values.otelTracesSamplerArg,
  }
}

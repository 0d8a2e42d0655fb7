/** How messages reach webhooks. */
import type { SettingValues } from '../settings/settings.ts'

export interface WebhooksConfig {
  readonly allowsPrivateNetwork: boolean
  readonly timeoutMs: number
  readonly firstRetryMs: number
  readonly perEndpoint: number
}

export function toWebhooksConfig(values: SettingValues): WebhooksConfig {
  return {
    allowsPrivateNetwork: values.webhookPrivateNetwork,
    timeoutMs: values.webhookTimeout,
    firstRetryMs: values.webhookFirstRetry,
    perEndpoint: values.webhookConcurrency,
  }
}

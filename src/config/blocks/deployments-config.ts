/** How deployments are reached, and who is told when their pools should grow or shrink. */
import type { PoolHook } from '../settings/account-settings.ts'
import type { SettingValues } from '../settings/settings.ts'

export interface DeploymentsConfig {
  /** null: deployments are reached by prefix only. */
  readonly domain: string | null
  readonly stagingLabel: string
  readonly hook: PoolHook | null
  readonly idleAfterMs: number
}

export function toDeploymentsConfig(values: SettingValues): DeploymentsConfig {
  return {
    domain: values.deploymentsDomain,
    // As the addresses of the contract's serverless deployments have it.
    stagingLabel: 'stg',
    hook: values.poolHook,
    idleAfterMs: values.poolIdle,
  }
}

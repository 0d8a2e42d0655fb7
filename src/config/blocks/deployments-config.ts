/** How deployments are reached, and who is told when their pools should grow or shrink. */
import type { SettingValues } from '../settings/settings.ts'

export type DeploymentsConfig = ReturnType<typeof toDeploymentsConfig>

export function toDeploymentsConfig(values: SettingValues) {
  return {
    /** null: deployments are reached by prefix only. */
    domain: values.deploymentsDomain,
    hook: values.poolHook,
    /** For deployments that do not say it themselves. */
    idleAfterMs: 300_000,
  }
}

/** The bounds of the Model Router, the folders of its catalogue, and the keys of its providers. */
import { loadBlock } from '../readers/read-block.ts'
import { Secret } from '../secrets.ts'
import type { ToAbsolute } from '../settings/setting-sources.ts'
import type { SettingValues } from '../settings/settings.ts'

export interface RouterConfig {
  /** Absolute. */
  readonly catalogs: readonly string[]
  /** Absolute path of the file with keys and settings of providers; null: they have no file of their own. */
  readonly providersFile: string | null
  readonly deadlineMs: number
  readonly maxBodyBytes: number
  readonly maxResultBytes: number
  readonly maxReplayBytes: number
  /** null: no limit but the tier's. */
  readonly maxCalls: number | null
  readonly spendCeilingMicros: number | null
  readonly requestsPerMinute: number | null
  readonly maxWaiting: number
  readonly maxWaitMs: number
  readonly creditsPerUsd: number
  readonly hasSandbox: boolean
}

export function toRouterConfig(values: SettingValues, toAbsolute: ToAbsolute): RouterConfig {
  return {
    catalogs: values.catalogs.map((folder) => toAbsolute('catalogs', folder)),
    providersFile: values.providers?.kind === 'file' ? toAbsolute('providers', values.providers.path) : null,
    deadlineMs: values.routerDeadline,
    maxBodyBytes: values.routerMaxBody,
    maxResultBytes: values.routerMaxResult,
    maxReplayBytes: values.routerMaxReplay,
    maxCalls: values.routerMaxCalls,
    spendCeilingMicros: values.routerSpendCeiling,
    requestsPerMinute: values.routerRate,
    maxWaiting: values.routerMaxWaiting,
    maxWaitMs: values.routerMaxWait,
    creditsPerUsd: values.creditsPerUsd,
    hasSandbox: values.sandboxModels,
  }
}

export function toProvidersSecret({ providers }: SettingValues, toAbsolute: ToAbsolute): Secret<string> | null {
  const value = loadBlock(providers, { name: 'providers', toAbsolute })
  return value === null ? null : new Secret(JSON.stringify(value))
}

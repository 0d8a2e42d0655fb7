/** The bounds of the Model Router, the folders of its catalogue, and the keys of its providers. */
import { loadBlock } from '../readers/read-choice.ts'
import { GIB, MIB } from '../readers/read-quantity.ts'
import { Secret } from '../secrets.ts'
import type { ToAbsolute } from '../settings/setting-sources.ts'
import type { SettingValues } from '../settings/settings.ts'

export type RouterConfig = ReturnType<typeof toRouterConfig>

export function toRouterConfig(values: SettingValues, toAbsolute: ToAbsolute) {
  return {
    /** Absolute. */
    catalogs: values.catalogs.map((folder) => toAbsolute('catalogs', folder)),
    /** Absolute path of the file with keys and settings of providers; null: they have no file of their own. */
    providersFile: values.providers?.kind === 'file' ? toAbsolute('providers', values.providers.path) : null,
    deadlineMs: values.routerDeadline,
    /** Room for the pictures and videos that providers take inside a request. */
    maxBodyBytes: 100 * MIB,
    /** The longest videos of the present models have a tenth of it. */
    maxResultBytes: GIB,
    /** A repeated request gets results up to this size again; keeping larger ones would cost more than making them anew. */
    maxReplayBytes: 256 * MIB,
    /** null: no limit but the tier's. */
    maxCalls: values.routerMaxCalls,
    spendCeilingMicros: values.routerSpendCeiling,
    requestsPerMinute: values.routerRate,
    /** Queued calls hold no connection: the bounds are only against a client that never stops. */
    maxWaiting: 1000,
    maxWaitMs: 3_600_000,
    /** The rate of the prices that the catalogue was made from. */
    creditsPerUsd: 211,
    hasSandbox: values.sandboxModels,
  }
}

export function toProvidersSecret({ providers }: SettingValues, toAbsolute: ToAbsolute): Secret<string> | null {
  const value = loadBlock('providers', providers, toAbsolute)
  return value === null ? null : new Secret(JSON.stringify(value))
}

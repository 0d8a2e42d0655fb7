/** The bounds of the Model Router, the folders of its catalogue, and the keys of its providers. */
import { ConfigError } from '../config-error.ts'
import { loadBlock, suggest } from '../readers/read-choice.ts'
import { GIB, MIB, ROUTER_LIMITS } from '../readers/read-quantity.ts'
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
    ...toLimits(loadBlock('routerLimits', values.routerLimits, toAbsolute)),
    /** Queued calls hold no connection: the bounds are only against a client that never stops. */
    maxWaiting: 1000,
    maxWaitMs: 3_600_000,
    /** The rate of the prices that the catalogue was made from. */
    creditsPerUsd: 211,
    hasSandbox: values.sandboxModels,
  }
}

function toLimits(block: object | null) {
  const given = Object.entries(block ?? {})
  const unknown = given.find(([name]) => !Object.hasOwn(ROUTER_LIMITS, name))?.[0]
  if (unknown !== undefined)
    throw new ConfigError(
      `routerLimits has the unknown member "${unknown}"${suggest(unknown, Object.keys(ROUTER_LIMITS))}`,
    )
  const limits = Object.fromEntries(
    given.map(([name, value]) => [name, readLimit(name as keyof typeof ROUTER_LIMITS, value)]),
  )
  return {
    maxCalls: limits['maxCalls'] ?? null,
    spendCeilingMicros: limits['spendCeiling'] ?? null,
    requestsPerMinute: limits['rate'] ?? null,
  }
}

/** As on a command line, or as a number. */
function readLimit(name: keyof typeof ROUTER_LIMITS, value: unknown): number {
  try {
    return ROUTER_LIMITS[name](typeof value === 'number' ? String(value) : typeof value === 'string' ? value : '')
  } catch (error) {
    throw new ConfigError(`${name} of routerLimits = ${JSON.stringify(value)} ${(error as Error).message}`)
  }
}

export function toProvidersSecret({ providers }: SettingValues, toAbsolute: ToAbsolute): Secret<string> | null {
  const value = loadBlock('providers', providers, toAbsolute)
  return value === null ? null : new Secret(JSON.stringify(value))
}

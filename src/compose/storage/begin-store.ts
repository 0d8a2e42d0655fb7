/**
 * Begins to open the store before the rest of the program is loaded: a store in the data folder opens in threads of its own
 * meanwhile.
 */
import { systemClock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import type { Config } from '../../config/config.ts'
import type { Secrets } from '../../config/secrets.ts'
import type { Store } from '../../domain/store.ts'
import { openStore } from './open-store.ts'

/** The store that is opening; left out for a store on Postgres, which is opened once the rest is loaded. */
export function beginStore(
  { store: config }: Pick<Config, 'store'>,
  secrets: Secrets,
  log: Log,
): { readonly store?: Promise<Store> } {
  if (config.kind !== 'sqlite') return {}
  const store = openStore(config, { secrets, clock: systemClock, log })
  // The start is told of a failure when it comes to it.
  store.catch(() => {})
  return { store }
}

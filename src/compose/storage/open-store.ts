/** The store that the configuration names. */

import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import { openSqliteStore } from '../../adapters/store/sqlite/open-sqlite-store.ts'
import type { StoreConfig } from '../../config/config.ts'
import type { Store } from '../../domain/store.ts'

export function openStore(config: StoreConfig, { clock, log }: { clock: Clock; log: Log }): Promise<Store> {
  return openSqliteStore({
    directory: config.directory,
    synchronous: config.synchronous === 'full' ? 'FULL' : 'NORMAL',
    clock,
    log,
  })
}

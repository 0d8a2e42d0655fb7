import { newUuidV4 } from '../../../lib/ids.ts'
import type { MetaStore } from '../../domain/store.ts'

const SERVICE_ID_KEY = 'serviceId'

/** The id of this service on ComfyUI servers that it shares with other services. */
export function readServiceId(store: Pick<MetaStore, 'ensureMeta'>): Promise<string> {
  return store.ensureMeta(SERVICE_ID_KEY, newUuidV4)
}

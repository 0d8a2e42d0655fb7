/** A name for this service towards servers that it shares with others: made once, kept with the data. */
import { newUuidV4 } from '../../lib/ids.ts'
import type { Store } from './open-store.ts'

const KEY = 'serviceId'

export async function readServiceId(store: Pick<Store, 'readMeta' | 'writeMeta'>): Promise<string> {
  const known = await store.readMeta(KEY)
  if (known !== null) return known
  const id = newUuidV4()
  await store.writeMeta(KEY, id)
  return id
}

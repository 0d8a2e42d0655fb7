/**
 * What engines could run when they were last seen, kept with the data. A start while an engine is away then knows its classes
 * and weights all the same: its jobs are accepted and wait.
 */
import type { ObjectInfo } from '../../../engine/graph/object-info.ts'
import { type JsonValue, parseLosslessJson, stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import type { Log } from '../../../lib/log.ts'
import type { Store } from '../storage/open-store.ts'

type Meta = Pick<Store, 'readMeta' | 'writeMeta'>

const keyOf = (engineId: string) => `engine:${engineId}`

export async function recallEngines(store: Meta, engineIds: readonly string[]): Promise<Map<string, ObjectInfo>> {
  const known = new Map<string, ObjectInfo>()
  for (const engineId of engineIds) {
    const text = await store.readMeta(keyOf(engineId))
    if (text !== null) known.set(engineId, parseLosslessJson(text) as unknown as ObjectInfo)
  }
  return known
}

/** Not awaited by whoever learns something: what is lost is learnt again at the next contact. */
export function createRememberEngine(
  store: Meta,
  log: Log,
  engineIds: readonly string[],
): (engineId: string, info: ObjectInfo) => void {
  const written = new Map<string, string>()
  return (engineId, info) => {
    if (!engineIds.includes(engineId)) return
    const text = stringifyLosslessJson(info as unknown as JsonValue)
    if (written.get(engineId) === text) return
    written.set(engineId, text)
    store
      .writeMeta(keyOf(engineId), text)
      .catch((error) => log.warn({ err: error, engine: engineId }, 'what an engine can run could not be remembered'))
  }
}

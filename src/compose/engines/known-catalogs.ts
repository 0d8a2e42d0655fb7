/**
 * Stores what each engine could run when it was last seen. After a start while an engine is away its classes and weights are
 * still known, so that its jobs are accepted and wait for it.
 */
import type { ObjectInfo } from '../../../engine/graph/object-info.ts'
import { type JsonValue, parseLosslessJson, stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import type { Log } from '../../../lib/log.ts'
import type { MetaStore } from '../../domain/store.ts'

const keyOf = (engineId: string) => `engine:${engineId}`

export async function recallEngines(store: MetaStore, engineIds: readonly string[]): Promise<Map<string, ObjectInfo>> {
  const known = new Map<string, ObjectInfo>()
  for (const engineId of engineIds) {
    const text = await store.readMeta(keyOf(engineId))
    if (text !== null) known.set(engineId, parseLosslessJson(text) as unknown as ObjectInfo)
  }
  return known
}

/** Writes in the background: what a crash loses is learnt again at the next contact. */
export function createRememberEngine(
  store: MetaStore,
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
      .catch((error) => log.warn({ err: error, engine: engineId }, 'the catalog of an engine could not be stored'))
  }
}

/**
 * Which engines the sweep of lapsed leases leaves alone, within two minutes: their runs go on without whoever followed them, and a process that
 * reaches the engine takes them on. How long that is waited for is counted from the moment when this process first saw such a run, so
 * that a service which was down for an hour waits as well.
 */
import { type Clock, uptimeMs } from '../../../../lib/clock.ts'
import type { EngineRegistry } from '../../engine/directory/engine-registry.ts'
import type { HeldRun } from '../job-store.ts'

interface SparedEnginesDeps {
  readonly registry: Pick<EngineRegistry, 'list'>
  /** It belongs to a worker that joined, which brings its runs by itself once it reaches the service again. */
  readonly isJoined: (engineId: string) => boolean
  readonly clock: Clock
  readonly sparedMs?: number
  /** How long after the start of this process. */
  readonly joinedMs?: number
}

export type FindSpared = (lapsed: readonly HeldRun[]) => Promise<readonly string[]>

/** Another process takes a server over 30 s after the death of the one that drove it, and must reach it then, on a machine that may be busy. */
const SPARED_MS = 120_000
const JOINED_MS = 60_000

export function createFindSpared(deps: SparedEnginesDeps): FindSpared {
  const { registry, isJoined, clock, sparedMs = SPARED_MS, joinedMs = JOINED_MS } = deps
  const since = new Map<string, number>()
  const openedAtMs = uptimeMs()

  return async (lapsed) => {
    const ids = new Set(lapsed.map(({ engineId }) => engineId))
    for (const id of since.keys()) if (!ids.has(id)) since.delete(id)
    if (ids.size === 0) return []
    const shared = new Set((await registry.list()).flatMap(({ isShared, status }) => (isShared ? [status.id] : [])))
    const nowMs = clock.now().getTime()
    return [...ids].filter((id) => {
      if (isJoined(id)) return uptimeMs() - openedAtMs < joinedMs
      if (!shared.has(id)) return false
      const firstMs = since.get(id) ?? nowMs
      since.set(id, firstMs)
      return nowMs - firstMs < sparedMs
    })
  }
}

/**
 * Makes planned faults happen at their time, and notes when each began and was mended. Faults of one target wait for each other; one that
 * would come much too late, because an upgrade takes its time, is left out, so that what was planned apart does not strike together.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { seededRandom } from '../../support/seeded-random.ts'
import type { World } from '../world/world.ts'
import { FAULTS, type FaultRow } from './fault-kinds.ts'
import type { PlannedFault } from './plan-faults.ts'

export interface FaultRecord extends PlannedFault {
  /** As dates in milliseconds; null: it did not come to that. */
  readonly beganAt: number
  readonly mendedAt: number | null
  readonly error: string | null
}

const MAX_LATE_MS = 60_000

interface StrikeOptions {
  readonly world: World
  readonly faults: readonly PlannedFault[]
  readonly signal: AbortSignal
  readonly say: (line: string) => void
}

/** Resolves when all are mended. Rejects when one could not be: then the trial cannot go on. */
export async function strike({ world, faults, signal, say }: StrikeOptions): Promise<FaultRecord[]> {
  const startedAtMs = performance.now()
  const records: FaultRecord[] = []
  const lasts = new Map<string, Promise<void>>()
  const all: Promise<void>[] = []
  let failure: unknown = null
  for (const [index, fault] of faults.entries()) {
    await pause(Math.max(0, startedAtMs + fault.atMs - performance.now()), undefined, { signal }).catch(() => {})
    if (signal.aborted || failure !== null) break
    // An upgrade restarts every node, so no other fault may do so meanwhile.
    const isOfAll = fault.target === 'all nodes'
    const before = isOfAll ? Promise.all(lasts.values()) : (lasts.get(fault.target) ?? lasts.get('all nodes'))
    const done = Promise.resolve(before).then(() => happen(index, fault))
    lasts.set(fault.target, done)
    if (isOfAll) for (const target of lasts.keys()) lasts.set(target, done)
    done.catch((error) => {
      failure = error
    })
    all.push(done)
  }
  await Promise.all(all)
  return records

  async function happen(index: number, fault: PlannedFault): Promise<void> {
    if (performance.now() - startedAtMs > fault.atMs + MAX_LATE_MS)
      return say(`left out: ${fault.kind}, ${fault.target}`)
    const row: FaultRow = FAULTS[fault.kind]
    const beganAt = Date.now()
    say(`${fault.kind}: ${fault.target}, ${(fault.lastsMs / 1000).toFixed(1)} s`)
    try {
      const mend = await row.begin(world, fault.target, seededRandom(index))
      await pause(fault.lastsMs, undefined, { signal }).catch(() => {})
      await mend()
      records.push({ ...fault, beganAt, mendedAt: Date.now(), error: null })
    } catch (error) {
      records.push({ ...fault, beganAt, mendedAt: null, error: String(error) })
      throw error
    }
  }
}

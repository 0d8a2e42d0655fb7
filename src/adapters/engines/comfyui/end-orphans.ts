/**
 * Ends on a server what a process of this service before us had submitted and nobody follows any more. The data folder is
 * locked to one process, so whatever carries the service's name and not that of its present process is nobody's.
 */
import type { ComfyApi, QueueEntry } from './api.ts'
import type { Stopper } from './stop-run.ts'

export interface OrphanDeps {
  readonly api: ComfyApi
  readonly stopper: Stopper
  /** Of all client ids that this service ever used. */
  readonly ownerPrefix: string
  /** Of those that its present process uses. */
  readonly clientPrefix: string
}

/** Returns how many there were. Throws CallError. */
export async function endOrphans({ api, stopper, ownerPrefix, clientPrefix }: OrphanDeps): Promise<number> {
  const { running, pending } = await api.queue({})
  const isOrphan = ({ clientId }: QueueEntry) =>
    clientId?.startsWith(ownerPrefix) === true && !clientId.startsWith(clientPrefix)
  const orphans = { pending: pending.filter(isOrphan), running: running.filter(isOrphan) }
  // Those that wait first: ending the one that runs would start the next.
  for (const { promptId } of orphans.pending) await stopper.press(promptId, 'pending')
  for (const { promptId } of orphans.running) await stopper.press(promptId, 'running')
  return orphans.pending.length + orphans.running.length
}

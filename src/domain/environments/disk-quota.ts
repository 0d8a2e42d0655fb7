/** How much of the builders' disks the releases of one account take, and may take. Pure. */
import type { LockedModel } from './lock.ts'

export interface HeldRelease {
  readonly releaseId: string
  /** Of its folder, without models. */
  readonly sizeBytes: number
  readonly models: readonly Pick<LockedModel, 'sha256' | 'sizeBytes'>[]
}

export interface DiskQuota {
  readonly maxBytes: number
  /** Of the same account, ready and kept. */
  readonly held: readonly HeldRelease[]
}

/** Why one more is too much, and what to do; null: it is not. A model counts once, however many releases have it. */
export function whyTooMuch({ maxBytes, held }: DiskQuota, more: Omit<HeldRelease, 'releaseId'>): string | null {
  const all = [...held, more]
  const models = new Map(all.flatMap((each) => each.models.map(({ sha256, sizeBytes }) => [sha256, sizeBytes])))
  const bytes = [...all.map(({ sizeBytes }) => sizeBytes), ...models.values()].reduce((sum, each) => sum + each, 0)
  if (bytes <= maxBytes) return null
  return `the releases of this account take ${bytes} bytes with this one, and ${maxBytes} are allowed; delete releases and deployments that are no longer needed, or have the operator raise "max_account_size" of builder`
}

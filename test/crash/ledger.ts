/** What the service has acknowledged. Whatever stands here must be there after any number of crashes. */
import { createHash } from 'node:crypto'

export interface AcknowledgedJob {
  readonly id: string
  readonly key: string
}

export interface AcknowledgedAsset {
  readonly id: string
  readonly key: string
  readonly sha256: string
}

export interface Ledger {
  readonly jobs: AcknowledgedJob[]
  readonly assets: AcknowledgedAsset[]
  /** Jobs once seen in a terminal state: that must never change. */
  readonly terminal: Map<string, string>
}

export function newLedger(): Ledger {
  return { jobs: [], assets: [], terminal: new Map() }
}

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

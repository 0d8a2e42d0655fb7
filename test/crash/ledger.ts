/** Records what the service has acknowledged. All of it must still be there after any number of crashes. */
import { createHash } from 'node:crypto'

export interface AcknowledgedJob {
  readonly id: string
  readonly key: string
  readonly label: string
  /** Was submitted with credentials, which do not survive a crash. */
  readonly hasSecret: boolean
}

export interface AcknowledgedAsset {
  readonly id: string
  readonly key: string
  readonly sha256: string
}

export interface Ledger {
  readonly jobs: AcknowledgedJob[]
  readonly assets: AcknowledgedAsset[]
  /** Assets whose removal was asked for (`asked`: with unknown outcome) and acknowledged: those must never come back. */
  readonly removed: Map<string, 'asked' | 'acknowledged'>
  /** Jobs once seen in a terminal state, with their outputs: that must never change. */
  readonly terminal: Map<string, string>
}

/** Stands for a credential; it must be nowhere in the data folder, whatever moment a crash picks. */
export const SECRET = 'crash-secret-7f3a9c'

export function newLedger(): Ledger {
  return { jobs: [], assets: [], removed: new Map(), terminal: new Map() }
}

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

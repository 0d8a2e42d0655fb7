/** What the steps of a hold are told: taking it, settling it, giving it back. */
import type { Micros } from '../../../../lib/text/usd.ts'
import type { ChargeLabels } from '../../../domain/credits/charges.ts'

export interface HoldInput {
  /** Such as `job:<id>` or `call:<id>`. */
  readonly holdId: string
  readonly accountId: string
  readonly micros: Micros
  readonly at: number
  /** What it is for: whatever is charged of it says so as well. */
  readonly labels: ChargeLabels
}

export interface SettleInput {
  readonly holdId: string
  /** What the work costs; may be more than was held. */
  readonly micros: Micros
  readonly at: number
  readonly memo: string
}

export interface ReleaseInput {
  readonly holdId: string
  readonly at: number
  readonly memo?: string
}

/** How much one file may ask for altogether, where small parts of it multiply. */
import { refuseConversion } from './convert-refusal.ts'

export type Spend = (amount: number) => void

/** `what`: of which there would be more than `limit`. */
export function createBudget(limit: number, what: string): Spend {
  let left = limit
  return (amount) => {
    left -= amount
    if (left < 0) refuseConversion('file_too_large', `the workflow has more than ${limit} ${what}`)
  }
}

/** Where budgets are kept. What they count is written with every hold and its end, under the lock of the account's balance. */
import type { Budget } from './budget.ts'

type BudgetChange = Partial<Pick<Budget, 'name' | 'limitMicros' | 'shares' | 'isHard' | 'raiseMicros' | 'raiseUntil'>>

type CreateBudgetOutcome =
  | { readonly outcome: 'created'; readonly budget: Budget }
  | { readonly outcome: 'too_many' }
  /** The account is unknown or not metered: nothing is held for it, so there is nothing to count. */
  | { readonly outcome: 'unmetered' }

export interface BudgetStore {
  /** With what was spent and held in its period so far already counted. */
  create(budget: Budget, max: number): Promise<CreateBudgetOutcome>
  /** By when they were made. */
  list(accountId: string): Promise<readonly Budget[]>
  /** null: the account has none with this id. */
  find(accountId: string, id: string): Promise<Budget | null>
  change(accountId: string, id: string, change: BudgetChange, at: Date): Promise<Budget | null>
  remove(accountId: string, id: string): Promise<boolean>
}

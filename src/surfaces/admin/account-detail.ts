/** All about one account: what it may, what it uses, what it has and what it spent. */

import type { Clock } from '../../../lib/clock.ts'
import type { AccountRecord } from '../../domain/accounts/account.ts'
import type { AccountStore } from '../../domain/accounts/account-store.ts'
import type { Accounts } from '../../domain/accounts/accounts.ts'
import type { LedgerStore } from '../../domain/credits/ledger.ts'
import { toAccountView, toBalanceView, toEntryView, toHoldView, toUsageView } from './account-view.ts'

export type ReadAccountDetail = (account: AccountRecord, options?: { readonly usageDays?: number }) => Promise<object>

export interface AccountDetailDeps {
  readonly accounts: Pick<Accounts, 'limitsOf'>
  readonly use: Pick<AccountStore, 'findUse'>
  readonly streamsOf: (accountId: string) => number
  readonly ledger: Pick<LedgerStore, 'balance' | 'usage' | 'holds' | 'entries'>
  readonly clock: Clock
}

const USAGE_DAYS = 30
const DAY_MS = 86_400_000
const SHOWN_HOLDS = 100
const SHOWN_ENTRIES = 20

export function createReadAccountDetail(deps: AccountDetailDeps): ReadAccountDetail {
  const { accounts, use, streamsOf, ledger, clock } = deps
  return async (account, { usageDays = USAGE_DAYS } = {}) => {
    const { id } = account
    const to = clock.now()
    const period = { from: new Date(to.getTime() - usageDays * DAY_MS), to }
    const [counted, balance, usage, holds, entries] = await Promise.all([
      use.findUse(id),
      ledger.balance(id),
      ledger.usage(id, period),
      ledger.holds(id, SHOWN_HOLDS),
      ledger.entries(id, { limit: SHOWN_ENTRIES, before: null }),
    ])
    return {
      ...toAccountView(account),
      limits: accounts.limitsOf(id),
      use: { running: counted?.running ?? 0, queued: counted?.queued ?? 0, streams: streamsOf(id) },
      balance: balance === null ? null : toBalanceView(balance),
      usage: toUsageView(usage, period),
      holds: holds.map(toHoldView),
      entries: entries.map(toEntryView),
    }
  }
}

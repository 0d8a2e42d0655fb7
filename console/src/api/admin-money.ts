/** Accounts as their operator makes and pays for them: new ones, their credit, what they and the service spent. */
import type { GpuAnswer, UsageAnswer } from './account.ts'
import type { AccountDetail } from './admin.ts'
import { getJson, request, send } from './client.ts'
import type { Statement } from './money.ts'

const ADMIN = '/admin/v1'
const accountAt = (id: string) => `${ADMIN}/accounts/${encodeURIComponent(id)}`

export const listTiers = (signal?: AbortSignal) =>
  getJson<{ readonly tiers: readonly { readonly name: string; readonly is_default: boolean }[] }>(
    `${ADMIN}/tiers`,
    signal,
  )

interface NewAccount {
  readonly id: string
  readonly name?: string
  readonly tier?: string
}

export const createAccount = (account: NewAccount) => send<AccountDetail>('POST', `${ADMIN}/accounts`, account)

export interface AccountChange {
  readonly tier?: string
  readonly status?: 'active' | 'suspended'
}

export const changeAccount = (id: string, change: AccountChange) => send<AccountDetail>('PATCH', accountAt(id), change)

/** `grantId` makes a repetition harmless. */
export const grantCredit = (id: string, usd: string, memo: string, grantId: string) =>
  send<unknown>('POST', `${accountAt(id)}/grants`, { usd, memo, id: grantId })

/** All that was charged under this name. A second one changes nothing. */
export const refund = (holdId: string, memo: string) =>
  send<{ readonly outcome: 'refunded' | 'repeated' }>('POST', `${ADMIN}/refunds`, { hold_id: holdId, memo })

/** Of all accounts together, or of one. */
export const getServiceUsage = (query: URLSearchParams, signal?: AbortSignal) =>
  getJson<UsageAnswer>(`${ADMIN}/usage?${query}`, signal)

export const getServiceGpuUsage = (query: URLSearchParams, signal?: AbortSignal) =>
  getJson<GpuAnswer>(`${ADMIN}/usage/gpu?${query}`, signal)

const statementAt = (id: string, month: string) => `${accountAt(id)}/statement?month=${encodeURIComponent(month)}`

export const getAccountStatement = (id: string, month: string, signal?: AbortSignal) =>
  getJson<Statement>(statementAt(id, month), signal)

export const getAccountStatementCsv = async (id: string, month: string) =>
  (await request(statementAt(id, month), { headers: { accept: 'text/csv' } })).text()

export interface PauseKey {
  readonly scope: 'service' | 'pool' | 'account'
  readonly name?: string
}

export interface Pause {
  /** `own`: an account by its own wish. */
  readonly scope: PauseKey['scope'] | 'own'
  readonly name: string | null
  readonly reason: string | null
  readonly paused_at: string
}

interface Pauses {
  readonly pauses: readonly Pause[]
}

export const getPauses = (signal?: AbortSignal) => getJson<Pauses>(`${ADMIN}/queue`, signal)
export const pauseQueue = (key: PauseKey, reason: string) =>
  send<Pauses>('POST', `${ADMIN}/queue/pause`, reason === '' ? key : { ...key, reason })
export const resumeQueueOf = (key: PauseKey) => send<Pauses>('POST', `${ADMIN}/queue/resume`, key)

/** Own keys at providers, budgets and statements of the account. */
import { getJson, request, send } from './client.ts'

const KEYS = '/api/v2/provider-keys'
const BUDGETS = '/api/v2/budgets'

export interface ProviderKey {
  readonly provider: string
  readonly last_four: string
  /** unreadable: the service has another secret key than when it was saved. */
  readonly status: 'ready' | 'unreadable'
  readonly updated_at: string
}

const keyAt = (provider: string) => `${KEYS}/${encodeURIComponent(provider)}`

export const listProviderKeys = (signal?: AbortSignal) =>
  getJson<{ readonly provider_keys: readonly ProviderKey[] }>(KEYS, signal)

export const putProviderKey = (provider: string, key: string) => send<ProviderKey>('PUT', keyAt(provider), { key })

export const testProviderKey = (provider: string) =>
  send<{ readonly result: string; readonly detail: string }>('POST', `${keyAt(provider)}/test`)

export const deleteProviderKey = (provider: string) => send<null>('DELETE', keyAt(provider))

export const BUDGET_SUBJECTS = ['account', 'key', 'model', 'endpoint', 'tag'] as const
export const BUDGET_PERIODS = ['hour', 'day', 'week', 'month'] as const

export interface BudgetWish {
  readonly name: string
  readonly subject: (typeof BUDGET_SUBJECTS)[number]
  readonly value?: string
  readonly limit_usd: string
  readonly period: (typeof BUDGET_PERIODS)[number]
  readonly rolling: boolean
  readonly time_zone?: string
  readonly hard: boolean
}

export interface Budget extends Omit<BudgetWish, 'value'> {
  readonly id: string
  readonly set_by: 'account' | 'operator'
  readonly value: string | null
  readonly limit_now_usd: string
  readonly spent_usd: string
  readonly left_usd: string
  readonly resets_at: string
  readonly alert_percent: readonly number[]
}

export const listBudgets = (signal?: AbortSignal) => getJson<{ readonly budgets: readonly Budget[] }>(BUDGETS, signal)

export const createBudget = (wish: BudgetWish) => send<Budget>('POST', BUDGETS, wish)

export const deleteBudget = (id: string) => send<null>('DELETE', `${BUDGETS}/${encodeURIComponent(id)}`)

interface StatementSum {
  readonly count: number
  readonly charged_usd: string
  readonly refunded_usd: string
}

export interface Statement extends StatementSum {
  readonly month: string
  readonly final: boolean
  readonly opening_usd: string
  readonly added_usd: string
  readonly taken_back_usd: string
  readonly closing_usd: string
  readonly held_usd: string
  readonly holds: number
  readonly lines: readonly (StatementSum & {
    readonly kind: 'job' | 'call'
    readonly model: string | null
    readonly pool: string | null
    readonly endpoint: string | null
  })[]
  readonly rest: StatementSum | null
}

const statementAt = (month: string) => `/api/v2/statement?month=${encodeURIComponent(month)}`

export const getStatement = (month: string, signal?: AbortSignal) => getJson<Statement>(statementAt(month), signal)

/** As a table. */
export const getStatementCsv = async (month: string) =>
  (await request(statementAt(month), { headers: { accept: 'text/csv' } })).text()

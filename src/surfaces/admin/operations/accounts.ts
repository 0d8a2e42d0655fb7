/** Accounts and the tiers that they may have. */
import type { FastifyInstance } from 'fastify'
import type { Clock } from '../../../../lib/clock.ts'
import { writeUsd } from '../../../../lib/text/usd.ts'
import type { AccountRecord, AccountStatus } from '../../../domain/accounts/account.ts'
import type { AccountStore } from '../../../domain/accounts/account-store.ts'
import type { AccountChange, Accounts } from '../../../domain/accounts/accounts.ts'
import type { ApiKey } from '../../../domain/accounts/keys/api-key.ts'
import { readOverrides } from '../../../domain/accounts/limits/read-limits.ts'
import type { Balance, Hold, LedgerEntry, LedgerStore, Usage } from '../../../domain/credits/ledger.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { needs } from '../../kit/guards/routes.ts'
import { idOf, readNumber, sendJson } from '../../kit/request.ts'
import { ADMIN_PATH, type AdminKit, readLimit, readParameters } from '../admin-operation.ts'

interface AccountOperationDeps {
  readonly kit: AdminKit
  readonly accounts: Accounts
  readonly readDetail: ReadAccountDetail
}

interface NewAccountBody {
  readonly id: string
  readonly name?: string
  readonly tier?: string
  readonly limits?: object
}

export function createAccount(app: FastifyInstance, { kit, accounts, readDetail }: AccountOperationDeps): void {
  app.post(`${ADMIN_PATH}/accounts`, needs('operator'), async (request, reply) => {
    const body = await kit.readBody<NewAccountBody>(request, 'NewAccount')
    const { id, name = id, tier = null, limits = {} } = body
    const { directory } = kit.audited(request, { action: 'account.create', subject: id, details: { ...body } })
    const account = await accounts.create({ id, name, tier, overrides: readOverrides(limits) }, directory)
    return sendJson(reply, 201, await readDetail(account))
  })
}

export function listAccounts(app: FastifyInstance, { accounts }: Pick<AccountOperationDeps, 'accounts'>): void {
  app.get(`${ADMIN_PATH}/accounts`, needs('operator'), (request, reply) => {
    const parameters = readParameters(request, ['limit', 'after'])
    const [limit, after] = [readLimit(parameters), parameters.get('after') ?? '']
    const rest = accounts.list().filter(({ id }) => id > after)
    const page = rest.slice(0, limit)
    const next = rest.length > limit ? (page.at(-1)?.id ?? null) : null
    return sendJson(reply, 200, { accounts: page.map(toAccountView), next })
  })
}

const USAGE_DAYS = { fallback: 30, max: 3660 }

export function getAccount(app: FastifyInstance, { accounts, readDetail }: AccountOperationDeps): void {
  app.get(`${ADMIN_PATH}/accounts/:id`, needs('operator'), async (request, reply) => {
    const usageDays = readNumber(readParameters(request, ['usage_days']), 'usage_days', USAGE_DAYS)
    return sendJson(reply, 200, await readDetail(mustFindAccount(accounts, idOf(request)), { usageDays }))
  })
}

interface AccountChangeBody {
  readonly name?: string
  readonly tier?: string
  readonly status?: AccountStatus
  readonly limits?: object
  readonly subscription_active?: boolean
}

export function updateAccount(app: FastifyInstance, { kit, accounts, readDetail }: AccountOperationDeps): void {
  app.patch(`${ADMIN_PATH}/accounts/:id`, needs('operator'), async (request, reply) => {
    const id = idOf(request)
    const body = await kit.readBody<AccountChangeBody>(request, 'AccountChange')
    const change = toChange(mustFindAccount(accounts, id), body)
    const { directory } = kit.audited(request, { action: 'account.update', subject: id, details: { ...body } })
    return sendJson(reply, 200, await readDetail(await accounts.change(id, change, directory)))
  })
}

function toChange({ overrides }: AccountRecord, body: AccountChangeBody): AccountChange {
  const { limits, subscription_active: subscriptionActive, ...rest } = body
  if (limits === undefined && subscriptionActive === undefined) return rest
  const own = limits === undefined ? overrides : readOverrides(limits)
  return { ...rest, overrides: subscriptionActive === undefined ? own : { ...own, subscriptionActive } }
}

export function listTiers(app: FastifyInstance, { accounts }: Pick<AccountOperationDeps, 'accounts'>): void {
  app.get(`${ADMIN_PATH}/tiers`, needs('operator'), (_request, reply) => {
    const { byName, defaultName } = accounts.tiers()
    const tiers = [...byName].map(([name, limits]) => ({ name, is_default: name === defaultName, limits }))
    return sendJson(reply, 200, { tiers })
  })
}

/** Throws not_found. */
export function mustFindAccount(accounts: Pick<Accounts, 'find'>, id: string): AccountRecord {
  const account = accounts.find(id)
  if (account === null) throw new ServiceError('not_found', 'there is no account with this id')
  return account
}

/** Everything about one account: its limits, what it uses, its balance and what it spent. */
type ReadAccountDetail = (account: AccountRecord, options?: { readonly usageDays?: number }) => Promise<object>

interface AccountDetailDeps {
  readonly accounts: Pick<Accounts, 'limitsOf'>
  readonly use: Pick<AccountStore, 'findUse'>
  readonly streamsOf: (accountId: string) => number
  readonly ledger: Pick<LedgerStore, 'balance' | 'usage' | 'holds' | 'entries'>
  readonly clock: Clock
}

const DAY_MS = 86_400_000
const SHOWN_HOLDS = 100
const SHOWN_ENTRIES = 20

export function createReadAccountDetail(deps: AccountDetailDeps): ReadAccountDetail {
  const { accounts, use, streamsOf, ledger, clock } = deps
  return async (account, { usageDays = USAGE_DAYS.fallback } = {}) => {
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

/** Accounts, keys and credits as the wire shows them. Pure. */
function toAccountView({ id, name, tier, status, overrides, createdAt }: AccountRecord) {
  return { id, name, tier, status, overrides, created_at: createdAt.toISOString() }
}

export function toKeyView(key: ApiKey) {
  return {
    id: key.id,
    account_id: key.accountId,
    name: key.name,
    scopes: key.scopes,
    endpoints: key.endpoints,
    created_at: key.createdAt.toISOString(),
    expires_at: toText(key.expiresAt),
    revoked_at: toText(key.revokedAt),
    last_used_at: toText(key.lastUsedAt),
    previous_until: toText(key.previousUntil),
  }
}

export function toBalanceView({ available, held, floor }: Balance) {
  return {
    available_micros: available,
    held_micros: held,
    floor_micros: floor,
    available_usd: writeUsd(available),
    held_usd: writeUsd(held),
  }
}

export function toHoldView({ id, micros, heldAt }: Hold) {
  return { id, micros, usd: writeUsd(micros), held_at: heldAt.toISOString() }
}

export function toEntryView(entry: LedgerEntry) {
  return {
    seq: entry.seq,
    kind: entry.kind,
    reference: entry.reference,
    granted_micros: entry.granted,
    available_micros: entry.available,
    held_micros: entry.held,
    charged_micros: entry.charged,
    available_usd: writeUsd(entry.available),
    at: entry.at.toISOString(),
    memo: entry.memo,
  }
}

function toUsageView(usage: Usage, { from, to }: { readonly from: Date; readonly to: Date }) {
  return {
    from: from.toISOString(),
    to: to.toISOString(),
    charged_micros: usage.charged,
    refunded_micros: usage.refunded,
    granted_micros: usage.granted,
    settled: usage.settled,
    released: usage.released,
    charged_usd: writeUsd(usage.charged),
  }
}

function toText(date: Date | null): string | null {
  return date?.toISOString() ?? null
}

/** Accounts, keys and credits as the wire shows them. Pure. */
import { writeUsd } from '../../../lib/text/usd.ts'
import type { AccountRecord } from '../../domain/accounts/account.ts'
import type { ApiKey } from '../../domain/accounts/keys/api-key.ts'
import type { Balance, Hold, LedgerEntry, Usage } from '../../domain/credits/ledger.ts'

export function toAccountView({ id, name, tier, status, overrides, createdAt }: AccountRecord) {
  return { id, name, tier, status, overrides, created_at: createdAt.toISOString() }
}

export function toKeyView(key: ApiKey) {
  return {
    id: key.id,
    account_id: key.accountId,
    name: key.name,
    scopes: key.scopes,
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

export function toUsageView(usage: Usage, { from, to }: { readonly from: Date; readonly to: Date }) {
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

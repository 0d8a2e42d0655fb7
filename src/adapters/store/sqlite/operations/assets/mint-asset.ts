/**
 * Mint: the same account, hash, path and tags (in the same order) give the same record; anything else a new one. Records of
 * job outputs are never the same as an upload's: they live and die with their job.
 */
import type { DatabaseSync } from 'node:sqlite'
import type { MintOutcome, MintRequest } from '../../../../../domain/assets/asset-store.ts'
import type { KeyHolder } from '../../../../../domain/idempotency/idempotency-key.ts'
import { type AssetRow, readAssetRow } from '../../../rows/asset-row.ts'
import { prepareClaimKey, prepareFindHolder } from '../accounts/idempotency-keys.ts'
import { prepareRows } from '../statement.ts'
import { ASSET_COLUMNS, IS_ALIVE, toAssetRow } from './asset-row.ts'

interface MintInput {
  readonly asset: AssetRow
  readonly key: string | null
  readonly keyExpiresAt: number
  readonly now: number
  readonly mustOwnHash: boolean
}

type MintAnswer =
  | { readonly outcome: 'minted'; readonly asset: AssetRow; readonly newToAccount: boolean }
  | { readonly outcome: 'existing'; readonly asset: AssetRow }
  | { readonly outcome: 'hash_unknown' }
  | { readonly outcome: 'id_taken' }
  | { readonly outcome: 'key_reused'; readonly holder: KeyHolder }

export function toMintInput({ asset, keyClaim, mustOwnHash }: MintRequest): MintInput {
  return {
    asset: toAssetRow(asset),
    key: keyClaim === null ? null : keyClaim.key,
    keyExpiresAt: keyClaim === null ? 0 : keyClaim.expiresAt.getTime(),
    now: (keyClaim === null ? asset.createdAt : keyClaim.claimedAt).getTime(),
    mustOwnHash,
  }
}

export function toMintOutcome(answer: MintAnswer): MintOutcome {
  if (answer.outcome !== 'minted' && answer.outcome !== 'existing') return answer
  return { ...answer, asset: readAssetRow(answer.asset) }
}

export function prepareMint(database: DatabaseSync): (input: MintInput) => MintAnswer {
  const findHolder = prepareFindHolder(database)
  const claimKey = prepareClaimKey(database)
  const renewSame = prepareRenewSame(database)
  const ownsHash = prepareRows<[number]>(
    database,
    `SELECT 1 FROM asset WHERE hash = ? AND account_id = ? AND ${IS_ALIVE} LIMIT 1`,
  )
  const insert = database.prepare(`
    INSERT INTO asset (${ASSET_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`)
  return ({ asset, key, keyExpiresAt, now, mustOwnHash }) => {
    const [, accountId, hash] = asset
    if (key !== null) {
      const holder = findHolder({ accountId, key, now })
      if (holder !== null) return { outcome: 'key_reused', holder }
    }
    const isOwned = ownsHash.get(hash, accountId, now) !== undefined
    if (mustOwnHash && !isOwned) return { outcome: 'hash_unknown' }
    const same = isOwned ? renewSame(asset, now) : null
    if (same === null && insert.run(...asset).changes === 0) return { outcome: 'id_taken' }
    const [assetId] = same ?? asset
    if (key !== null) claimKey({ accountId, key, expiresAt: keyExpiresAt, jobId: null, assetId })
    if (same !== null) return { outcome: 'existing', asset: same }
    return { outcome: 'minted', asset, newToAccount: !isOwned }
  }
}

/** The record that says the same already, made the newest and kept at least as long as asked; null when there is none. */
function prepareRenewSame(database: DatabaseSync): (asset: AssetRow, now: number) => AssetRow | null {
  const find = prepareRows<[seq: number]>(
    database,
    `SELECT seq FROM asset INDEXED BY asset_identity
     WHERE account_id = ? AND hash = ? AND file_path IS ? AND tags = ? AND job_id IS NULL AND ${IS_ALIVE}
     ORDER BY seq DESC LIMIT 1`,
  )
  const renew = prepareRows<AssetRow>(
    database,
    `UPDATE asset SET seq = 1 + (SELECT max(seq) FROM asset),
       expires_at = CASE WHEN expires_at IS NULL OR ?2 IS NULL THEN NULL ELSE max(expires_at, ?2) END
     WHERE seq = ?1 RETURNING ${ASSET_COLUMNS}`,
  )
  return ([, accountId, hash, , , filePath, tags, , expiresAt], now) => {
    const found = find.get(accountId, hash, filePath, tags, now)
    return found === undefined ? null : (renew.get(found[0], expiresAt) ?? null)
  }
}

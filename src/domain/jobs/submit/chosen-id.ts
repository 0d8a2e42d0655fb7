/**
 * Ids that callers choose for their jobs. Job ids are unique over all accounts, so refusing one that is taken would reveal that
 * somebody else has such a job. Where several accounts share the service, a chosen id is therefore only a name within its
 * account, and the job's id is derived from both.
 */
import { hash } from 'node:crypto'

/** The id of the job to which this account gives the name `chosen`: always the same, so that a used name stays taken. */
export type ChooseJobId = (accountId: string, chosen: string) => string

/** For a service with one account: every id that is taken is its own. */
export const asChosen: ChooseJobId = (_accountId, chosen) => chosen

/** UUIDv8 (RFC 9562, 5.8) of a hash, so nobody can find a name that leads to a given id of somebody else. */
export const withinAccount: ChooseJobId = (accountId, chosen) => {
  const digest = hash('sha256', `${accountId}/${chosen}`, 'hex')
  const variant = ((Number.parseInt(digest[16], 16) & 0x3) | 0x8).toString(16)
  const parts = [
    digest.slice(0, 8),
    digest.slice(8, 12),
    `8${digest.slice(13, 16)}`,
    `${variant}${digest.slice(17, 20)}`,
    digest.slice(20, 32),
  ]
  return parts.join('-')
}

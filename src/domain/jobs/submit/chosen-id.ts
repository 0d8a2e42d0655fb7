/**
 * Ids that callers choose for their jobs. An id belongs to one job of all accounts, so a refusal of one that is taken would
 * tell whoever tries it that somebody else has such a job. Where several accounts share the service a chosen id therefore is
 * a name within its account: the job's own id is made of both.
 */
import { hash } from 'node:crypto'

/** The id of the job that this account calls so. The same every time: a name that was used once is still taken. */
export type ChooseJobId = (accountId: string, chosen: string) => string

/** For one account alone: whatever is taken is its own. */
export const asChosen: ChooseJobId = (_accountId, chosen) => chosen

/** UUIDv8 (RFC 9562, 5.8). Nobody can find a name of its own that leads to a given id of somebody else. */
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

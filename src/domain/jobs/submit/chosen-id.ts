/**
 * Ids that callers choose for their jobs. Job ids are unique over all accounts, so refusing one that is taken would reveal that
 * somebody else has such a job. Where several accounts share the service, a chosen id is therefore only a name within its
 * account, and the job's id is derived from both.
 */
import { uuidFromText } from '../../../../lib/ids.ts'

/** The id of the job to which this account gives the name `chosen`: always the same, so that a used name stays taken. */
export type ChooseJobId = (accountId: string, chosen: string) => string

/** For a service with one account: every id that is taken is its own. */
export const asChosen: ChooseJobId = (_accountId, chosen) => chosen

/** The id comes from a hash, so nobody can find a name that leads to a given id of somebody else. */
export const withinAccount: ChooseJobId = (accountId, chosen) => uuidFromText(`${accountId}/${chosen}`)

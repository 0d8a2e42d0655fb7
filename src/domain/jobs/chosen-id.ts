/**
 * Ids that callers choose for their jobs. An id belongs to one job of all accounts, so a refusal of one that is taken would
 * tell whoever tries it that somebody else has such a job. Where several accounts share the service a chosen id therefore is
 * a name within its account: the job's own id is made of both.
 */
import { uuidFromText } from '../../../lib/ids.ts'

/** The id of the job that this account calls so. The same every time: a name that was used once is still taken. */
export type ChooseJobId = (accountId: string, chosen: string) => string

/** For one account alone: whatever is taken is its own. */
export const asChosen: ChooseJobId = (_accountId, chosen) => chosen

/** Nobody can find a name of its own that leads to a given id of somebody else. */
export const withinAccount: ChooseJobId = (accountId, chosen) => uuidFromText(`${accountId}/${chosen}`)

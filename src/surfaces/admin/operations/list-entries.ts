import type { FastifyInstance } from 'fastify'
import type { Accounts } from '../../../domain/accounts/accounts.ts'
import type { LedgerStore } from '../../../domain/credits/ledger.ts'
import { toEntryView } from '../account-view.ts'
import { mustFindAccount } from '../must-find.ts'
import { ADMIN_PATH, idOf, send } from '../operation.ts'
import { readBefore, readLimit, readParameters } from '../page-query.ts'

export interface ListEntriesDeps {
  readonly accounts: Pick<Accounts, 'find'>
  readonly ledger: Pick<LedgerStore, 'entries'>
}

export function listEntries(app: FastifyInstance, { accounts, ledger }: ListEntriesDeps): void {
  app.get(`${ADMIN_PATH}/accounts/:id/entries`, async (request, reply) => {
    const parameters = readParameters(request, ['limit', 'before'])
    const { id } = mustFindAccount(accounts, idOf(request))
    const limit = readLimit(parameters)
    const found = await ledger.entries(id, { limit: limit + 1, before: readBefore(parameters) })
    const page = found.slice(0, limit)
    const next = found.length > limit ? (page.at(-1)?.seq ?? null) : null
    return send(reply, 200, { entries: page.map(toEntryView), next })
  })
}

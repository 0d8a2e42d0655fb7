import type { FastifyInstance } from 'fastify'
import type { LedgerStore } from '../../../domain/credits/ledger.ts'
import { ADMIN_PATH, send } from '../operation.ts'

export function checkLedger(app: FastifyInstance, { ledger }: { readonly ledger: Pick<LedgerStore, 'check'> }): void {
  app.get(`${ADMIN_PATH}/ledger/check`, async (_request, reply) => {
    const { accounts, entries, openHolds, faults } = await ledger.check()
    return send(reply, 200, {
      accounts,
      entries,
      open_holds: openHolds,
      faults: faults.map(({ fault, accountId, reference, expected, found }) => ({
        fault,
        account_id: accountId,
        reference,
        expected_micros: expected,
        found_micros: found,
      })),
    })
  })
}

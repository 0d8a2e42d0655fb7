import type { FastifyInstance } from 'fastify'
import type { RefundOutcome } from '../../../domain/credits/ledger.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { ADMIN_PATH, type AdminKit, send } from '../operation.ts'

interface NewRefundBody {
  readonly hold_id: string
  readonly micros?: number | null
  readonly memo?: string
}

export function refundCharge(app: FastifyInstance, { kit }: { readonly kit: AdminKit }): void {
  app.post(`${ADMIN_PATH}/refunds`, async (request, reply) => {
    const { hold_id: holdId, micros = null, memo = '' } = await kit.readBody<NewRefundBody>(request, 'NewRefund')
    const change = { action: 'credits.refund', subject: holdId, details: { micros, memo } }
    const outcome = await kit.audited(request, change).ledger.refund({ holdId, micros, at: kit.clock.now(), memo })
    return send(reply, 201, toView(holdId, outcome))
  })
}

function toView(holdId: string, outcome: RefundOutcome): object {
  if (outcome.outcome === 'not_charged') throw new ServiceError('not_found', 'nothing was charged under this id')
  if (outcome.outcome === 'more_than_charged') {
    const message = `micros must be at most what was charged, ${outcome.charged}`
    throw new ServiceError('invalid_field', message, { details: { field: 'micros' } })
  }
  const { accountId, micros } = outcome
  return { hold_id: holdId, outcome: outcome.outcome, account_id: accountId, micros }
}
